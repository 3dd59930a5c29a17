"""All ops that random programs have, a file for each family, and how often each comes up."""

# In this order, which decides what a seed means.
import generate_elementwise
import generate_rows
import generate_shapes
import generate_indices
import generate_products
from generate_control import CONTROL
from generate_table import OPS

# What random steps choose from: control flow and views come up more often.
WEIGHTED = (list(OPS) + CONTROL * 4 + ["index", "reshape", "transpose", "add", "multiply", "sum", "concat", "read"] * 2)
