/** The server of moto, from PyPI. https://github.com/getmoto/moto */
import { python } from "../python.ts"
import type { Server } from "./Server.ts"

const version = "5.2.5"

/** Downloads it, unless it exists. */
export const install = async (say: (line: string) => void): Promise<Server> => {
  const name = `moto-${version}`
  const command = await python(name, "about 250 MB from PyPI", [`moto[server]==${version}`], say)
  return {
    name: "moto",
    version,
    source: command,
    command,
    args: (port) => ["-m", "moto.server", "-H", "127.0.0.1", "-p", String(port)]
  }
}
