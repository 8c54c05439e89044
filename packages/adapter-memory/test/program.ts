/** A program in a process of its own, with core and other packages among its dependencies. */
import { execFile } from "node:child_process"
import { mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"

/** Connects to addresses, which are source text; answers a line for each, its error. The packages, or modules of one, have a source. */
export const program = async (
  packages: Readonly<Record<string, string>>,
  ...addresses: ReadonlyArray<string>
): Promise<string> => {
  const folder = await mkdtemp(join(tmpdir(), "requeue-"))
  try {
    const modules = join(folder, "node_modules")
    await mkdir(join(modules, "@requeue"), { recursive: true })
    const core = dirname(fileURLToPath(import.meta.resolve("@requeue/core/package.json")))
    await symlink(core, join(modules, "@requeue", "core"))
    for (const [name, source] of Object.entries(packages)) {
      if (name.endsWith(".js")) {
        await writeFile(join(modules, name), source)
        continue
      }
      await mkdir(join(modules, name), { recursive: true })
      const manifest = { name, type: "module", exports: { ".": "./index.js", "./*": "./*" } }
      await writeFile(join(modules, name, "package.json"), JSON.stringify(manifest))
      await writeFile(join(modules, name, "index.js"), source)
    }
    const main = join(folder, "main.mjs")
    await writeFile(
      main,
      `import { connect } from "@requeue/core/promise"
      for (const address of [${addresses.join()}])
        await connect(address).catch(({ name, message }) => console.log(name + ": " + message))`
    )
    // Started from elsewhere, as a service manager does, and with nothing that package managers add to the search.
    const { NODE_COMPILE_CACHE = "" } = process.env
    const options = { cwd: tmpdir(), env: { NODE_COMPILE_CACHE }, timeout: 100_000 }
    const { stdout } = await promisify(execFile)(process.execPath, [...process.execArgv, main], options)
    return stdout.trim()
  } finally {
    await rm(folder, { recursive: true })
  }
}
