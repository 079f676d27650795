"""Renders templates as transformers does: {"template", "context"} gives {"rendered"} or {"error"}."""

import datetime
import json

from answer import serve


def environment():
    """Jinja's sandbox with what transformers adds; `do` is one of Jinja's own extensions."""
    import jinja2
    from jinja2.ext import Extension, loopcontrols
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    class Generation(Extension):
        """transformers' tag: its content is rendered."""

        tags = {"generation"}

        def parse(self, parser):
            line = next(parser.stream).lineno
            body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
            return jinja2.nodes.Scope(body, lineno=line)

    def raise_exception(message):
        raise jinja2.exceptions.TemplateError(message)

    def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

    made = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, loopcontrols, "jinja2.ext.do"]
    )
    made.filters["tojson"] = tojson
    made.globals["raise_exception"] = raise_exception
    made.globals["strftime_now"] = lambda format: datetime.datetime.now().strftime(format)
    return made


def renderer():
    env = environment()

    def render(question):
        try:
            return {"rendered": env.from_string(question["template"]).render(**question["context"])}
        except Exception as error:
            return {"error": f"{type(error).__name__}: {error}"}

    return render


if __name__ == "__main__":
    serve(["jinja2"], renderer)
