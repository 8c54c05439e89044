/**
 * Faults of the file, by the world's rates:
 *
 * | rate | fault |
 * | --- | --- |
 * | busy | another program has locked the file, for a while |
 * | lostRequest | the disk is full, for a while |
 * | cut | a commit fails |
 * | lostAnswer | a sync fails |
 * | late | a sync takes long |
 * | twice | the process is killed before a commit |
 * | echo | the process is killed right after a commit |
 */
import type { Machine } from "../world/Machine.ts"
import type { World } from "../world/World.ts"

/** An action of a process on its file. */
export type Verb = "publish" | "receive" | "settle" | "program"

/** The faults of one process. Those of SQLite are thrown. */
export interface Faults {
  readonly begin: () => void
  readonly write: (verb: Verb) => void
  readonly commit: (verb: Verb) => void
  readonly committed: (verb: Verb) => void
  /** How long a sync takes, and whether it fails. */
  readonly sync: () => { readonly millis: number; readonly fails: boolean }
}

/** Maximum milliseconds of a lock, of a full disk, and of a sync. */
const longest = { lock: 12_000, full: 5000, sync: 30_000 }

/** The error of SQLite with this result code, as `node:sqlite` throws it. https://www.sqlite.org/rescode.html */
export const sqliteError = (errcode: number, message: string): Error =>
  Object.assign(new Error(message), { code: "ERR_SQLITE_ERROR", errcode })

/** Makes the faults of processes; `kill` ends one that may be killed. */
export const make = ({ draw, fault, isCalm, latency, now }: World, kill: (machine: Machine) => void) => {
  const until = { lock: 0, full: 0 }
  /** Whether something lasts, which a fault may begin now. */
  const lasts = (what: "lock" | "full", kind: "busy" | "lostRequest", place: string): boolean => {
    // The file is made when the world begins.
    if (isCalm() || now() === 0) return false
    if (now() >= until[what] && fault(kind, place)) until[what] = now() + draw.between(place, 0, longest[what])
    return now() < until[what]
  }

  return (machine: Machine): Faults => {
    const { name } = machine
    return {
      begin: () => {
        if (lasts("lock", "busy", `${name} begin`)) throw sqliteError(5, "database is locked")
      },
      write: (verb) => {
        if (lasts("full", "lostRequest", `${name} ${verb}`)) throw sqliteError(13, "database or disk is full")
      },
      commit: (verb) => {
        if (fault("twice", `${name} ${verb} before`)) kill(machine)
        if (fault("cut", `${name} ${verb} commit`)) throw sqliteError(10, "disk I/O error")
      },
      committed: (verb) => {
        if (fault("echo", `${name} ${verb} after`)) kill(machine)
      },
      sync: () => {
        const place = `${name} publish sync`
        const millis = latency(place) + (fault("late", place) ? draw.between(`${place} late`, 0, longest.sync) : 0)
        return { millis, fails: fault("lostAnswer", place) }
      }
    }
  }
}
