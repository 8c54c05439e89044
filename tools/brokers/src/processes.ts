/**
 * Processes by pid and start time. A pid alone may belong to somebody else by the time it is signalled; with its start
 * time it cannot.
 */
import { execFileSync } from "node:child_process"
import { readFileSync, readdirSync } from "node:fs"
import { setTimeout as sleep } from "node:timers/promises"
import { patience } from "./ready.ts"

export interface Identity {
  readonly pid: number
  readonly started: string
}

/** The variable that every process of an instance has in its environment, its helpers and daemons too. */
export const marker = "REQUEUE_BROKERS_INSTANCE"

const linux = process.platform === "linux"

// Start times on Linux count from the boot.
const boot = linux ? readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim() : ""

const startedOnLinux = (pid: number): string | undefined => {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8")
  // The command's name may contain anything; what follows its last parenthesis is fields.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ")
  // A zombie whose threads still end has its ports still.
  const isZombie = fields[0] === "Z" && Number(fields[17]) <= 1
  return isZombie || fields[0] === "X" ? undefined : `${boot} ${fields[19]}`
}

const startedElsewhere = (pid: number): string | undefined => {
  const line = execFileSync("ps", ["-o", "stat=,lstart=", "-p", String(pid)], { encoding: "utf8" }).trim()
  return line === "" || line.startsWith("Z") ? undefined : line.slice(line.indexOf(" ")).trim()
}

/** Who has this pid now, unless nobody or only a zombie has. */
export const identify = (pid: number): Identity | undefined => {
  try {
    const started = linux ? startedOnLinux(pid) : startedElsewhere(pid)
    return started === undefined ? undefined : { pid, started }
  } catch {
    return undefined
  }
}

/** One that ended before anybody could look at it. Never alive, and never signalled. */
export const lost = (pid: number): Identity => ({ pid, started: "never" })

export const isAlive = ({ pid, started }: Identity): boolean => identify(pid)?.started === started

/** Sends a signal to the process if it is still the same; says whether it was. */
export const signal = (identity: Identity, name: NodeJS.Signals): boolean => {
  if (!isAlive(identity)) return false
  try {
    process.kill(identity.pid, name)
    return true
  } catch (cause) {
    // It ended in between; anything else, such as a lack of permission, is news.
    if ((cause as NodeJS.ErrnoException).code === "ESRCH") return false
    throw cause
  }
}

/** Whether all of them ended in time. */
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
  if (await ended(identities, patience)) return
  const pids = identities.filter(isAlive).map(({ pid }) => pid)
  throw new Error(`Processes ${pids.join(", ")} are still there ${patience} ms after SIGKILL`)
}

/** Those with the instance's id in their environment. Only Linux can tell; elsewhere there are the recorded ones. */
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
