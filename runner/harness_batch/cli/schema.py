"""`harness-batch schema`: the JSON Schemas, for editors and for other programs."""

import json

import click

from harness_batch.messages import JsonObject


@click.command()
@click.argument(
    "name", type=click.Choice(["recipe", "config", "agent", "result", "findings"]), default="recipe"
)
def command(name: str) -> None:
    """Print the JSON Schema of recipe, config, agent, result (result.json) or findings."""
    click.echo(json.dumps(_schema(name), indent=2, ensure_ascii=False))


def _schema(name: str) -> JsonObject:
    match name:
        case "config":
            from harness_batch.config.schema import config_schema

            return config_schema()
        case "agent":
            from harness_batch.agents.door import agent_schema

            return agent_schema()
        case "result":
            from harness_batch_reports.result_json import result_schema

            schema: JsonObject = result_schema()
            return schema
        case "findings":
            from harness_batch_reports.findings import findings_schema

            found: JsonObject = findings_schema()
            return found
        case _:
            from harness_batch.recipe.schema import recipe_schema

            return recipe_schema()
