"""nn.Module, what it adds to models, and how models show themselves."""

import html
import weakref

from .. import _core

_nn = _core.nn

# The inputs that models were last built for, so that a notebook can show their summary.
_inputs = weakref.WeakKeyDictionary()


def _remember(model, input):
    try:
        if not isinstance(input, _core.TensorSpec):
            input = _core.spec(input.shape, input.dtype)
        _inputs[model] = input
    except TypeError:  # A model that cannot be a key; an input that is a plain list.
        pass


def summary(model, input):
    """The layers of a model with their outputs and memory, for an input of this type. Nothing runs.

    `input` is a td.spec, or a tensor or array of the type. Prints as a table.
    """
    result = _nn.summary(model, input)
    _remember(model, input)
    return result


def build(model, input):
    """Sets the shapes of all layers, as a first call would. Nothing runs and nothing is allocated."""
    _nn.build(model, input)
    _remember(model, input)


def _variables_table(model):
    rows = [f"{name}  {variable.dtype}{list(variable.shape) if variable.has_shape else ' of no shape yet'}"
            for name, variable in _nn.named_variables(model)]
    return "\n".join([type(model).__name__, *("  " + row for row in rows)])


def _repr_html_(self):
    """The summary of a model that was built; before that, its Variables."""
    try:
        known = _inputs.get(self)
    except TypeError:
        known = None
    text = str(_nn.summary(self, known)) if known is not None else _variables_table(self)
    return f"<pre>{html.escape(text)}</pre>"


class Module:
    """A base class for models. Layers, Variables and Modules are attributes, also in lists, tuples and dicts.

    It is not needed: td.nn's functions take any object. It adds them as methods.
    """

    def named_variables(self):
        """The Variables with their names, each once: [("up/kernel", ...), ...]."""
        return _nn.named_variables(self)

    def variables(self):
        """The Variables, each once."""
        return _nn.variables(self)

    def trainable_variables(self):
        """The trainable Variables, each once."""
        return _nn.trainable_variables(self)

    def clone(self):
        """A deep copy: a model with new Variables of the same values. (copy.copy shares them.)"""
        return _nn.clone(self)

    def build(self, input):
        """Sets the shapes of all layers, as a first call would."""
        build(self, input)
        return self

    def summary(self, input):
        """The layers with their outputs and memory, for an input of this type."""
        return summary(self, input)

    _repr_html_ = _repr_html_


class Lambda(Module):
    """A function together with the layers it uses: nn.Lambda(lambda x, dense: x + dense(x), dense).

    Its Variables are named by position: "0/kernel".
    """

    def __init__(self, function, *layers):
        import inspect  # Slow to import, and not needed by all.

        self.function, self.layers = function, layers
        try:
            inspect.signature(function).bind(None, *layers)
            self.takes_layers = bool(layers)
        except TypeError:
            self.takes_layers = False
        except ValueError:  # Nothing is known about its parameters.
            self.takes_layers = bool(layers)

    def __call__(self, x):
        function = _core._function_to_call(self.function)
        return function(x, *self.layers) if self.takes_layers else function(x)

    @property
    def _tidemark_parts(self):
        return self.layers


def _add_methods():
    """What Module has, for the classes of C++."""
    names = ["named_variables", "variables", "trainable_variables", "clone", "build", "summary", "_repr_html_"]
    for each in vars(_nn).values():
        if isinstance(each, type) and hasattr(each, "__deepcopy__") and not issubclass(each, _nn.Optimizer):
            for name in names:
                setattr(each, name, Module.__dict__[name])


_add_methods()
