/** `promtool`, which checks and tests alert rules of Prometheus. https://prometheus.io/docs/prometheus/latest/command-line/promtool/ */
import { execFile } from "node:child_process"
import { readdirSync } from "node:fs"
import { join } from "node:path"
import { promisify } from "node:util"
import { Unavailable } from "./Broker.ts"
import { hasCommand, installOnce } from "./installOnce.ts"

const execute = promisify(execFile)

/** Milliseconds that the download may take. */
const downloadTimeout = 300_000

/**
 * The command: the machine's own, else that of Debian's package. The package is unpacked, not installed, which needs no root and
 * starts no server.
 *
 * @throws Unavailable if there is neither
 */
export const promtool = async (say: (line: string) => void = console.error): Promise<string> => {
  if (process.env["REQUEUE_NO_SERVERS"] !== undefined) throw new Unavailable("nothing is downloaded here")
  const own = await hasCommand("promtool", "--version").then(
    () => "promtool",
    () => undefined
  )
  if (own !== undefined) return own
  await hasCommand("apt-get", "--version")
  const folder = await installOnce("promtool", "20 MB from Debian", say, async (partial) => {
    try {
      await execute("apt-get", ["download", "prometheus"], { cwd: partial, timeout: downloadTimeout })
      const [file] = readdirSync(partial)
      await execute("dpkg-deb", ["-x", file!, "."], { cwd: partial })
    } catch (cause) {
      throw new Unavailable(`Debian's package prometheus cannot be had: ${String(cause).split("\n", 1)[0]}`)
    }
  })
  return join(folder, "usr", "bin", "promtool")
}
