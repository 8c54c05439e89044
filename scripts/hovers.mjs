/** Points at every name in a newcomer's program, and fails if an editor shows nothing: the built packages must describe it. */
import { join } from "node:path"
import { hovers } from "./hovers/hovers.mjs"
import { root } from "./workspace.mjs"

const { count, silent } = await hovers(join(root, "packages", "cli"))
for (const place of silent) console.error(`scripts/hovers/program.ts, ${place} has no docstring that an editor shows`)
console.log(`${count} names, ${silent.length} without a word`)
process.exitCode = silent.length === 0 && count > 0 ? 0 : 1
