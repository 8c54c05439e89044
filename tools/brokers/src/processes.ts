/**
 * Processes by pid and start time. A pid alone may belong to another process by the time it is signalled; a pid and a start
 * time cannot.
 */
import { execFileSync } from "node:child_process"
import { readFileSync, readdirSync } from "node:fs"
import { setTimeout as sleep } from "node:timers/promises"
import { codeOf } from "./errorCode.ts"
import { answerTimeout } from "./ready.ts"

export interface Identity {
  readonly pid: number
  readonly started: string
}

/** The environment variable that every process of an instance has, also its helpers and daemons. */
export const marker = "REQUEUE_BROKERS_INSTANCE"

const linux = process.platform === "linux"

// Start times on Linux count from the boot.
const boot = linux ? readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim() : ""

const startedOnLinux = (pid: number): string | undefined => {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8")
  // The command's name may contain anything. The fields begin after the last parenthesis.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ")
  // A zombie keeps its ports until all its threads have ended.
  const isZombie = fields[0] === "Z" && Number(fields[17]) <= 1
  return isZombie || fields[0] === "X" ? undefined : `${boot} ${fields[19]}`
}

const startedElsewhere = (pid: number): string | undefined => {
  const line = execFileSync("ps", ["-o", "stat=,lstart=", "-p", String(pid)], { encoding: "utf8" }).trim()
  return line === "" || line.startsWith("Z") ? undefined : line.slice(line.indexOf(" ")).trim()
}

/** Identifies the process with this pid; `undefined` if there is none, or only a zombie. */
export const identify = (pid: number): Identity | undefined => {
  try {
    const started = linux ? startedOnLinux(pid) : startedElsewhere(pid)
    return started === undefined ? undefined : { pid, started }
  } catch {
    return undefined
  }
}

/** Identifies a process that ended before it could be read. It is never alive, and never signalled. */
export const lost = (pid: number): Identity => ({ pid, started: "never" })

export const isAlive = ({ pid, started }: Identity): boolean => identify(pid)?.started === started

/** Sends a signal to a process if it is still alive, and returns whether it was. */
export const signal = (identity: Identity, name: NodeJS.Signals): boolean => {
  if (!isAlive(identity)) return false
  try {
    process.kill(identity.pid, name)
    return true
  } catch (cause) {
    // It ended in between. Any other error, such as a lack of permission, is thrown.
    if (codeOf(cause) === "ESRCH") return false
    throw cause
  }
}

/** Waits until all have ended, and returns whether they did so in time. */
export const ended = async (identities: ReadonlyArray<Identity>, milliseconds: number): Promise<boolean> => {
  const deadline = performance.now() + milliseconds
  while (identities.some(isAlive)) {
    if (performance.now() > deadline) return false
    await sleep(10)
  }
  return true
}

/** Ends processes with SIGKILL and waits until they are gone. */
export const kill = async (identities: ReadonlyArray<Identity>): Promise<void> => {
  for (const identity of identities) signal(identity, "SIGKILL")
  if (await ended(identities, answerTimeout)) return
  const pids = identities.filter(isAlive).map(({ pid }) => pid)
  throw new Error(`Processes ${pids.join(", ")} are still there ${answerTimeout} ms after SIGKILL`)
}

/** Finds the processes with an instance's id in their environment. Finds none except on Linux. */
export const marked = (id: string): ReadonlyArray<Identity> => {
  if (!linux) return []
  return readdirSync("/proc").flatMap((name) => {
    if (!/^\d+$/.test(name)) return []
    try {
      const variables = readFileSync(`/proc/${name}/environ`, "latin1").split("\0")
      const identity = variables.includes(`${marker}=${id}`) ? identify(Number(name)) : undefined
      return identity === undefined ? [] : [identity]
    } catch {
      // It ended, or belongs to another user.
      return []
    }
  })
}
