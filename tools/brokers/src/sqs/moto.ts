/** The server of moto, from PyPI, in a virtual environment of its own. https://github.com/getmoto/moto */
import { join } from "node:path"
import { run } from "../installer.ts"
import { hasCommand, installOnce } from "../installOnce.ts"
import type { Server } from "./Server.ts"

const version = "5.2.5"

/** Downloads it, unless it is there. */
export const install = async (say: (line: string) => void): Promise<Server> => {
  const python = (environment: string) => join(environment, "bin", "python")
  const environment = await installOnce(`moto-${version}`, "about 250 MB from PyPI", say, async (folder) => {
    await hasCommand("python3", "--version")
    await run("python3", ["-m", "venv", folder])
    await run(python(folder), ["-m", "pip", "install", "-q", "--disable-pip-version-check", `moto[server]==${version}`])
  })
  return {
    name: "moto",
    version,
    source: environment,
    command: python(environment),
    args: (port) => ["-m", "moto.server", "-H", "127.0.0.1", "-p", String(port)]
  }
}
