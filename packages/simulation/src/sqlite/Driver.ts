/** The adapter's driver in one process: its file is the world's, and so is its time. */
import { checkpoint, type Driver, type Log } from "@requeue/adapter-sqlite/driver"
import * as Context from "effect/Context"
import * as Machine from "../world/Machine.ts"
import type { World } from "../world/World.ts"
import type { Connections } from "./Connections.ts"
import type { Disk } from "./Disk.ts"
import type { Faults } from "./Faults.ts"

/** Processes that watch the file. */
export interface Watchers {
  readonly watch: (machine: Machine.Machine, onChange: () => void) => () => void
  /** A process has changed the file; `undefined`: a producer outside. Its own changes are no news to it. */
  readonly notify: (by: string | undefined) => void
}

/** No process watches. */
export const watchers = (world: World): Watchers => {
  const all = new Map<() => void, Machine.Machine>()
  return {
    watch: (machine, onChange) => {
      all.set(onChange, machine)
      machine.onKilled(() => void all.delete(onChange))
      return () => void all.delete(onChange)
    },
    notify: (by) => {
      for (const [onChange, { name, perform }] of all) {
        if (name !== by) world.after(0, () => perform(() => all.has(onChange) && onChange()))
      }
    }
  }
}

type Service = Context.Service.Shape<typeof Driver>

/** How much sooner than in real files a log is long: worlds are short. */
const sooner = 20

interface Dependencies {
  readonly disk: Disk
  readonly machine: Machine.Machine
  readonly connections: Connections
  readonly faults: Faults
  readonly watchers: Watchers
  readonly isAway: () => boolean
}

/** The driver of a process. */
export const make = (world: World, { connections, disk, faults, isAway, machine, watchers }: Dependencies): Service => {
  const { isAlive, perform } = machine
  /** The boot in which the process has opened the file last. */
  let opened = 0

  const flush = (): Promise<void> =>
    new Promise((resolve, reject) => {
      if (!isAlive()) return
      // A process that has the file of an earlier boot learns that its disk is gone.
      const boot = opened
      const end = disk.sync()
      const { fails, millis } = faults.sync()
      world.after(millis, () =>
        perform(() => {
          if (fails || boot !== disk.boot() || !end()) reject(new Error("EIO: i/o error, fdatasync"))
          else resolve()
        })
      )
    })

  const copy = (pages: number): boolean => {
    const db = connections.open("adapter", false)
    try {
      return checkpoint(db, pages)
    } finally {
      db.close()
      disk.written()
    }
  }

  const log: Log = {
    flush,
    has: (pages) => disk.hasLog(pages / sooner),
    checkpoint: async (pages) => {
      await new Promise<void>((resolve) => void world.after(faults.sync().millis, () => perform(resolve)))
      return copy(pages / sooner)
    },
    close: () => Promise.resolve()
  }

  const isThere = (path: string): boolean => !isAway() && disk.isFile(path)

  const identity = (file: string): string | undefined => {
    const [, path = file, suffix = ""] = /^(.*?)(-wal)?$/.exec(file) ?? []
    return isThere(path) ? `${disk.boot()}${suffix}` : undefined
  }

  return {
    resolve: (path) => path,
    open: () => {
      const db = connections.open("adapter", false)
      opened = disk.boot()
      return db
    },
    fileSystem: () => 0,
    identity,
    logOf: (path) => (isThere(path) ? `${path}-wal` : undefined),
    log: () => log,
    // Without consumers, no change is of interest.
    watch: (_, onChange) => (Machine.isOfWorld(machine) ? () => undefined : watchers.watch(machine, onChange)),
    soon: (run) => void world.after(0, () => perform(run)),
    keepAlive: () => () => undefined
  }
}
