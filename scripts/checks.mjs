const build = ["turbo", "run", "build", "--output-logs=errors-only"]

/** The checks, by name: each is a list of commands; all of them must succeed. */
export const checks = {
  // The compiler over sources and tests of every package, in one program.
  types: [["tsc", "-p", "tsconfig.test.json"]],
  // Type-aware rules read the declarations of built packages.
  lint: [build, ["oxlint", "--type-aware", "--deny-warnings"]],
  format: [["oxfmt", "--check"]],
  arrows: [["node", "scripts/arrows.mjs"]],
  // Each test is on its level.
  levels: [["node", "scripts/levels.mjs"]],
  // Words and sentences of the pages, and their length.
  prose: [["node", "scripts/prose.mjs"]],
  conventions: [["node", "scripts/conventions.mjs"]],
  // Every example of the documentation, compiled and run.
  examples: [build, ["node", "scripts/examples.mjs"]],
  // The documentation as a site, without dead links, and the API reference, whose docstrings link to what exists.
  site: [["node", "tools/site/src/site.mjs"]],
  // The reports in api/ match what programs can import.
  api: [["node", "scripts/api.mjs", "--check"]],
  // docs/options.md matches the sources, and docstrings state the real defaults.
  options: [["node", "--conditions=@requeue/source", "scripts/options.mjs", "--check"]],
  // What an editor shows for the names that newcomers meet, from the built packages.
  hovers: [build, ["node", "scripts/hovers.mjs"]],
  scripts: [["node", "--test", "scripts/*.test.mjs"]],
  // Manifests, files and declarations of the packed packages.
  packed: [["node", "scripts/packed.mjs"]],
  workflows: [["node", "scripts/workflows.mjs"]],
  knip: [["knip", "--no-progress"]]
}

export const names = Object.keys(checks)
