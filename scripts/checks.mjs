/** The checks, by name: each is a list of commands, run in their folder; all of them must succeed. */
import { packages } from "./workspace.mjs"

const build = { command: ["turbo", "run", "build", "--output-logs=errors-only"] }
const perPublished = (...command) =>
  packages.filter(({ manifest }) => manifest.private !== true).map(({ folder }) => ({ folder, command }))

export const checks = {
  // The compiler over sources and tests of every package, in one program.
  types: [{ command: ["tsc", "-p", "tsconfig.test.json"] }],
  // Type-aware rules read the declarations of built packages.
  lint: [build, { command: ["oxlint", "--type-aware", "--deny-warnings"] }],
  format: [{ command: ["oxfmt", "--check"] }],
  arrows: [{ command: ["node", "scripts/arrows.mjs"] }],
  // Each test is on its level.
  levels: [{ command: ["node", "scripts/levels.mjs"] }],
  // Words and sentences of the pages, and their length.
  prose: [{ command: ["node", "scripts/prose.mjs"] }],
  conventions: [{ command: ["node", "scripts/conventions.mjs"] }],
  // Every example of the documentation, compiled and run.
  examples: [build, { command: ["node", "scripts/examples.mjs"] }],
  // It is built to check that the links of docstrings lead somewhere.
  reference: [build, { command: ["npm", "run", "--silent", "reference"] }],
  // The documentation as a site, without dead links.
  site: [{ command: ["node", "tools/site/src/site.mjs"] }],
  // The reports in api/ match what programs can import.
  api: [{ command: ["node", "scripts/api.mjs", "--check"] }],
  // docs/options.md matches the sources, and docstrings state the real defaults.
  options: [{ command: ["node", "--conditions=@requeue/source", "scripts/options.mjs", "--check"] }],
  // What an editor shows for the names that newcomers meet, from the built packages.
  hovers: [build, { command: ["node", "scripts/hovers.mjs"] }],
  scripts: [{ command: ["node", "--test", "scripts/*.test.mjs"] }],
  publint: [build, ...perPublished("publint", "--strict")],
  attw: [build, ...perPublished("attw", "--pack", ".", "--profile", "esm-only")],
  workflows: [{ command: ["node", "scripts/workflows.mjs"] }],
  knip: [{ command: ["knip", "--no-progress"] }]
}

export const names = Object.keys(checks)
