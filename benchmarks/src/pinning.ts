/**
 * One core for the broker, another for the client: on a small machine, throughput depends more on where the scheduler puts the
 * two than on anything that is measured.
 */
import { spawnSync } from "node:child_process"
import { availableParallelism } from "node:os"

export interface Pinning {
  readonly broker: number
  readonly client: number
}

/** `undefined` without `taskset`, or without a second core. */
export const detect = (): Pinning | undefined => {
  const found = spawnSync("taskset", ["--version"], { stdio: "ignore" }).status === 0
  return found && availableParallelism() >= 2 ? { broker: 0, client: 1 } : undefined
}

/** The command that runs a program on the client's core. */
export const client = (
  pinning: Pinning | undefined,
  program: string,
  args: ReadonlyArray<string>
): readonly [string, Array<string>] =>
  pinning === undefined ? [program, [...args]] : ["taskset", ["-c", String(pinning.client), program, ...args]]

/** Moves a running server, with all of its threads, to the broker's core. */
export const moveBroker = (pinning: Pinning | undefined, pid: number | undefined): void => {
  if (pinning !== undefined && pid !== undefined) {
    spawnSync("taskset", ["-acp", String(pinning.broker), String(pid)], { stdio: "ignore" })
  }
}

/** The server processes on this machine. */
export const pidsOf = (nodes: ReadonlyArray<{ readonly pid: () => number | undefined }>): ReadonlyArray<number> =>
  nodes.flatMap((node) => node.pid() ?? [])
