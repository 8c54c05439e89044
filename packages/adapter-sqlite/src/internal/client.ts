/** SQLite and the file system. Only this file imports them. */
import * as fs from "node:fs"
import { type FileHandle, open } from "node:fs/promises"
import { dirname } from "node:path"
import type { DatabaseSync, StatementSync } from "node:sqlite"

export type { StatementSync as Statement }

/** A connection of the driver. Its calls are synchronous. */
export type Database = Pick<DatabaseSync, "prepare" | "exec" | "close">

/** Writes one file to the disk. */
export interface Flusher {
  /** Resolves once all earlier writes are on the disk. */
  readonly flush: () => Promise<void>
  readonly close: () => void
}

/** The platform, which tests replace. */
export interface Driver {
  /** Opens or creates a file. Locked files are refused at once: waiting for a lock would block the event loop. */
  readonly open: (path: string) => Database
  /** Returns the number of the file system's kind, as `statfs` reports it; `undefined` if the folder is missing. */
  readonly fileSystem: (path: string) => number | undefined
  /** Returns a name of the file that a replacement does not have; `undefined` if the file is missing. */
  readonly identity: (path: string) => string | undefined
  /** Opens what writes a file to the disk, without blocking the event loop. */
  readonly flusher: (path: string) => Flusher
  /** Calls back after each change of a file. The result ends it; `undefined` if the file cannot be watched. */
  readonly watch: (path: string, onChange: () => void) => (() => void) | undefined
  /** Calls back once the current turn of the event loop has gathered its work. */
  readonly soon: (run: () => void) => void
}

/** The first flush also writes the file's entry in its folder: otherwise a power cut could take the whole file. */
const flusher: Driver["flusher"] = (path) => {
  // Windows flushes only files that are open for writing, and no folders.
  const isWindows = process.platform === "win32"
  let log: Promise<FileHandle> | undefined
  const opened = async (): Promise<FileHandle> => {
    const handle = await open(path, isWindows ? "r+" : "r")
    if (!isWindows) await syncFolder(dirname(path))
    return handle
  }
  const close = (): void => {
    void log?.then((handle) => handle.close()).catch(() => undefined)
    log = undefined
  }
  const flush = async (): Promise<void> => {
    try {
      log ??= opened()
      await (await log).datasync()
    } catch (error) {
      close()
      throw error
    }
  }
  return { flush, close }
}

const syncFolder = async (folder: string): Promise<void> => {
  const handle = await open(folder)
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}

const orUndefined = <A>(read: () => A): A | undefined => {
  try {
    return read()
  } catch {
    return undefined
  }
}

/** Node's own. */
export const node: Driver = {
  open: (path) => {
    // Not imported: loading it makes Node 22 warn, also in programs that use another broker.
    const { DatabaseSync: Opened } = process.getBuiltinModule("node:sqlite")
    return new Opened(path, { timeout: 0 })
  },
  fileSystem: (path) => orUndefined(() => fs.statfsSync(dirname(path)).type),
  identity: (path) =>
    orUndefined(() => {
      const { dev, ino } = fs.statSync(path)
      return `${dev}:${ino}`
    }),
  flusher,
  watch: (path, onChange) =>
    orUndefined(() => {
      const watcher = fs.watch(path, { persistent: false }, onChange)
      watcher.on("error", () => watcher.close())
      return () => watcher.close()
    }),
  // oxlint-disable-next-line no-restricted-globals -- the end of a turn, which gathers the sends of many sockets
  soon: (run) => void setImmediate(run)
}
