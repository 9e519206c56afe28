"""What the compilers of CUDA get wrong, each a script that needs cupy and a GPU alone."""
