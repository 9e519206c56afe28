"""What drivers of OpenCL get wrong, each a script that needs pyopencl alone."""
