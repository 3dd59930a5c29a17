"""Running the blocks of a user's function: their errors read as if the function had not been rewritten."""
import opcode

RAISE = opcode.opmap["RAISE_VARARGS"]


def run(block, *arguments):
    """Calls a block. Reading a local name that is not set is Python's own error: to Python the name is one of an enclosing function."""
    try:
        return block(*arguments)
    except NameError as error:
        if type(error) is NameError and error.name in block.__code__.co_freevars and "free variable" in str(error):
            text = f"cannot access local variable {error.name!r} where it is not associated with a value"
            raise UnboundLocalError(text, name=error.name).with_traceback(error.__traceback__) from None
        raise


def is_raised_by(block, error):
    """Whether a `raise` statement of the block's own function raised the error."""
    last = error.__traceback__
    while last.tb_next is not None:
        last = last.tb_next
    code = last.tb_frame.f_code
    own = (code.co_filename, code.co_name) == (block.__code__.co_filename, block.__code__.co_name)
    return own and code.co_code[last.tb_lasti] == RAISE
