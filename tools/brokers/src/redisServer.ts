/** `redis-server`, for benchmarks of queues that need one. */
import { execFile } from "node:child_process"
import { readdirSync } from "node:fs"
import { join } from "node:path"
import { promisify } from "node:util"
import { Unavailable } from "./Broker.ts"
import { hasCommand, installOnce } from "./installOnce.ts"

const execute = promisify(execFile)

/** Milliseconds that the download may take. */
const downloadTimeout = 300_000

/** Debian's packages of the server, its libraries included. */
const packages = ["redis-tools", "redis-server", "libjemalloc2", "liblzf1"]

export interface Program {
  readonly command: string
  /** Further variables that its environment needs. */
  readonly environment: Readonly<Record<string, string>>
}

/**
 * The command: the machine's own, else that of Debian's packages. They are unpacked, not installed, which needs no root and
 * starts no server.
 *
 * @throws Unavailable if there is neither
 */
export const redisServer = async (say: (line: string) => void = console.error): Promise<Program> => {
  const own = await hasCommand("redis-server", "--version").then(
    () => true,
    () => false
  )
  if (own) return { command: "redis-server", environment: {} }
  await hasCommand("apt-get", "--version")
  const folder = await installOnce("redis", "2 MB from Debian", say, async (partial) => {
    try {
      await execute("apt-get", ["download", ...packages], { cwd: partial, timeout: downloadTimeout })
      for (const file of readdirSync(partial)) await execute("dpkg-deb", ["-x", file, "."], { cwd: partial })
    } catch (cause) {
      throw new Unavailable(`Debian's packages of redis cannot be had: ${String(cause).split("\n", 1)[0]}`)
    }
  })
  const [triplet] = readdirSync(join(folder, "usr", "lib")).filter((name) => name.includes("-linux-"))
  return {
    command: join(folder, "usr", "bin", "redis-server"),
    environment: { LD_LIBRARY_PATH: join(folder, "usr", "lib", triplet!) }
  }
}
