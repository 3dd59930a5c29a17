"""Running the blocks of a user's function: their errors read as if the function had not been rewritten."""


def run(block, *arguments):
    """Calls a block. Reading a local name that is not set is Python's own error: to Python the name is one of an enclosing function."""
    try:
        return block(*arguments)
    except NameError as error:
        if type(error) is NameError and error.name in block.__code__.co_freevars and "free variable" in str(error):
            text = f"cannot access local variable {error.name!r} where it is not associated with a value"
            raise UnboundLocalError(text, name=error.name).with_traceback(error.__traceback__) from None
        raise
