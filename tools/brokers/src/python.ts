/** Python with packages from PyPI, in a virtual environment. */
import { join } from "node:path"
import { run } from "./installer.ts"
import { hasCommand, installOnce } from "./installOnce.ts"

/**
 * Returns the interpreter of the environment with this name, which is made once. `size` is the size of the download, for the log.
 */
export const python = async (
  name: string,
  size: string,
  packages: ReadonlyArray<string>,
  say: (line: string) => void
): Promise<string> => {
  const interpreter = (environment: string) => join(environment, "bin", "python")
  const environment = await installOnce(name, size, say, async (folder) => {
    await hasCommand("python3", "--version")
    await run("python3", ["-m", "venv", folder])
    await run(interpreter(folder), ["-m", "pip", "install", "-q", "--disable-pip-version-check", ...packages])
  })
  return interpreter(environment)
}
