"""What a UOp program is: ops, nodes, args, derived properties, text. Standard library only."""
