/** The bytes of an installed package, without its dependencies. */
import { globSync, statSync } from "node:fs"
import { join } from "node:path"
import { verdict } from "./verdict.mjs"

/** Judges the size of a package in a project that has it. */
export const size = (name, limit, folder) => {
  const files = globSync("**/*", { cwd: join(folder, "node_modules", name) })
  const stats = files.map((file) => statSync(join(folder, "node_modules", name, file)))
  const bytes = stats.reduce((sum, stat) => sum + (stat.isFile() ? stat.size : 0), 0)
  const wrong = () =>
    bytes > 0 && bytes <= limit ? undefined : `it has ${bytes} bytes, and should have ${limit} at most`
  return verdict(`what ${name} takes up: ${bytes} bytes`, { code: 0, stdout: "", stderr: "" }, wrong)
}
