"""The Tensor frontend: builds graphs by operators, captures functions, computes gradients."""
