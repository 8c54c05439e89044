/**
 * The disk of a world. Its file is a real one, in memory: a power cut keeps what was synced of it. Each boot works on another copy of
 * the file, so the connections of an earlier boot change nothing.
 *
 * Three kinds of syncs happen. Programs sync the log, and so does SQLite itself when it commits with `synchronous = FULL`. At a
 * checkpoint, SQLite syncs the log and then the file. https://www.sqlite.org/wal.html#performance_considerations
 * When a commit begins the log again, SQLite syncs the new header before anything else is written: otherwise a part of the old log
 * could be copied into the file once more. https://sqlite.org/src/info/ff5be73dee
 */
import { node } from "@requeue/adapter-sqlite/driver"
import * as fs from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"

/** The disk of a world. */
export interface Disk {
  /** The path that programs use. */
  readonly path: string
  /** The number of the boot. */
  readonly boot: () => number
  /** Whether the path leads to the file of this boot. */
  readonly isFile: (path: string) => boolean
  readonly open: () => DatabaseSync
  /** Whether the log has this many pages. */
  readonly hasLog: (pages: number) => boolean
  /** Notices a checkpoint. */
  readonly written: () => void
  /** Begins a sync of the log. The returned function ends it, and returns whether the file is still the same. */
  readonly sync: () => () => boolean
  /** Loses what was not synced; `isLater`: whether a sector that was written later survives. */
  readonly powerCut: (isLater: () => boolean) => void
  readonly close: () => void
}

/** A folder in memory. */
const memory = fs.existsSync("/dev/shm") ? "/dev/shm" : tmpdir()

/** The bytes that a disk writes atomically. */
const sector = 512

/** The size of the log's header, in bytes. https://www.sqlite.org/walformat.html#the_wal_header */
const header = 32

const nothing = Buffer.alloc(0)

const read = (path: string): Buffer => (fs.existsSync(path) ? fs.readFileSync(path) : nothing)

/** Returns the synced bytes, of which a power cut has replaced any sectors by those that were written later. The header is synced. */
const torn = (synced: Buffer, written: Buffer, isLater: () => boolean): Buffer => {
  const mixed = Buffer.alloc(Math.max(written.length, synced.length))
  synced.copy(mixed)
  written.copy(mixed, 0, 0, header)
  for (let at = 0; at < written.length; at += sector) {
    if (isLater()) written.copy(mixed, at, at, at + sector)
  }
  return mixed
}

/**
 * The number of frames that a checkpoint has copied, with the log's salt.
 * https://www.sqlite.org/walformat.html#the_wal_index_file_format
 */
const checkpointOf = (path: string): string => {
  const index = Buffer.alloc(100)
  const file = fs.openSync(`${path}-shm`, "r")
  fs.readSync(file, index)
  fs.closeSync(file)
  return `${index.toString("hex", 32, 40)} ${index.readUInt32LE(96)}`
}

/** An empty disk; `losesPower`: whether it must remember what was synced. */
export const make = (losesPower: boolean): Disk => {
  const folder = fs.mkdtempSync(join(memory, "requeue-world-"))
  const path = join(folder, "queue.db")
  let [boot, syncs] = [0, 0]
  /** The log as the last sync saved it, and the number of that sync. */
  let [synced, last]: [Buffer, number] = [nothing, 0]
  let checkpoint = ""
  const at = (): string => `${path}.${boot}`
  let log = node.log(at())

  return {
    path,
    boot: () => boot,
    isFile: (other) => other === path || other === at(),
    open: () => new DatabaseSync(at(), { timeout: 0 }),
    hasLog: (pages) => log.has(pages),
    written: () => {
      if (!losesPower) return
      const before = checkpoint
      checkpoint = checkpointOf(at())
      if (checkpoint !== before && !checkpoint.endsWith(" 0")) [synced, last] = [read(`${at()}-wal`), ++syncs]
    },
    sync: () => {
      const [begun, bytes, sync] = [boot, losesPower ? read(`${at()}-wal`) : nothing, ++syncs]
      return () => {
        if (boot !== begun) return false
        // A sync that began later may have ended before.
        if (last < sync) [synced, last] = [bytes, sync]
        return true
      }
    },
    powerCut: (isLater) => {
      const file = read(at())
      ;[synced, last] = [torn(synced, read(`${at()}-wal`), isLater), ++syncs]
      void log.close()
      boot++
      log = node.log(at())
      checkpoint = ""
      fs.writeFileSync(at(), file)
      fs.writeFileSync(`${at()}-wal`, synced)
    },
    close: () => {
      void log.close()
      fs.rmSync(folder, { recursive: true })
    }
  }
}
