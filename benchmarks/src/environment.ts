/** What a figure depends on besides the code. */
import { arch, availableParallelism, cpus, loadavg, platform, release, totalmem } from "node:os"
import type { Pinning } from "./pinning.ts"

export const describe = (pinning: Pinning | undefined): Readonly<Record<string, string>> => ({
  node: process.version,
  system: `${platform()} ${release()} ${arch()}`,
  cpu: `${availableParallelism()} x ${cpus()[0]?.model ?? "unknown"}`,
  memory: `${Math.round(totalmem() / 2 ** 30)} GB`,
  pinning:
    pinning === undefined
      ? "none: no taskset, or one core. Throughput is not to be trusted"
      : `broker on core ${pinning.broker}, client on core ${pinning.client}`,
  // Of the last minute: other work on the machine.
  "load at the start": loadavg()[0]!.toFixed(2)
})
