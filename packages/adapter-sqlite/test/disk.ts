/**
 * An emulated disk: a crash keeps what was written, and a power cut keeps what was synced. Each boot works on new copies of the
 * files, so the connections of an earlier boot change nothing.
 *
 * Two kinds of syncs happen. The adapter syncs the `-wal` file. SQLite syncs both files at a checkpoint, unless `synchronous` is
 * OFF. https://www.sqlite.org/wal.html#performance_considerations
 */
import * as fs from "node:fs"
import type { DatabaseSync } from "node:sqlite"

const suffixes = ["", "-wal"] as const

type Image = { readonly [K in (typeof suffixes)[number]]: Buffer | undefined }

const nothing: Image = { "": undefined, "-wal": undefined }

const read = (path: string): Buffer | undefined => (fs.existsSync(path) ? fs.readFileSync(path) : undefined)

/** Bytes of a log of 1000 pages, before which SQLite makes no checkpoint. */
const checkpointSize = 1000 * 4096

/** The size of what a disk writes at once, in bytes. */
const sector = 512

/** Returns the synced bytes, of which a power cut has replaced any sectors by those that were written later. */
const torn = (synced: Buffer | undefined, written: Buffer | undefined, isLater: () => boolean): Buffer | undefined => {
  if (written === undefined) return synced
  const mixed = Buffer.alloc(Math.max(written.length, synced?.length ?? 0))
  synced?.copy(mixed)
  for (let at = 0; at < written.length; at += sector) if (isLater()) written.copy(mixed, at, at, at + sector)
  return mixed
}

/**
 * The number of frames that a checkpoint has copied, with the log's salt. Empty for a file that its last connection has closed.
 * https://www.sqlite.org/walformat.html#the_wal_index_file_format
 */
const checkpointOf = (path: string): string => {
  if (!fs.existsSync(`${path}-shm`)) return ""
  const index = Buffer.alloc(100)
  const file = fs.openSync(`${path}-shm`, "r")
  fs.readSync(file, index)
  fs.closeSync(file)
  return `${index.toString("hex", 32, 40)} ${index.readUInt32LE(96)}`
}

export const make = () => {
  let [boot, syncs] = [0, 0]
  let open = new Set<DatabaseSync>()
  /** What the last sync of each file saved, and the number of that sync. */
  const synced = new Map<string, readonly [image: Image, sync: number]>()
  const checkpoints = new Map<string, string>()

  /** The file of this boot. */
  const at = (path: string): string => {
    const [, base = path, suffix = ""] = /^(.*?)(-wal)?$/.exec(path) ?? []
    return boot === 0 ? path : `${base}.${boot}${suffix}`
  }

  const imageOf = (path: string): Image => ({ "": read(at(path)), "-wal": read(`${at(path)}-wal`) })

  const save = (path: string): void => void synced.set(path, [imageOf(path), ++syncs])

  /** Starts again with these files. */
  const reboot = (imageAt: (path: string) => Image): void => {
    const images = Array.from(synced.keys(), (path) => [path, imageAt(path)] as const)
    for (const db of open) db.close()
    open = new Set()
    boot++
    for (const [path, image] of images) {
      synced.set(path, [image, ++syncs])
      for (const suffix of suffixes) {
        const bytes = image[suffix]
        if (bytes !== undefined) fs.writeFileSync(`${at(path)}${suffix}`, bytes)
      }
    }
  }

  return {
    at,
    boot: () => boot,
    opened: (path: string, db: DatabaseSync): void => {
      open.add(db)
      if (!synced.has(path)) synced.set(path, [nothing, 0])
    },
    closed: (db: DatabaseSync): void => void open.delete(db),
    /** Notices a checkpoint. Call it after each commit, and after each close, of a connection that is not `OFF`. */
    written: (path: string): void => {
      const size = fs.statSync(`${at(path)}-wal`, { throwIfNoEntry: false })?.size
      if (size !== undefined && size < checkpointSize) return
      const checkpoint = checkpointOf(at(path))
      const isNew = checkpoint === "" || (checkpoint !== checkpoints.get(path) && !checkpoint.endsWith(" 0"))
      if (!isNew) return
      checkpoints.set(path, checkpoint)
      save(path)
    },
    /** Changes with each checkpoint that copies pages, and when the log begins again. */
    checkpointOf: (path: string): string => checkpointOf(at(path)),
    /** The log has begun again: it and the file are on the disk. */
    restarted: save,
    /** Begins a sync of one file, which saves what was written before. The returned function ends it. */
    sync: (file: string): (() => void) => {
      const [path, suffix] = file.endsWith("-wal") ? [file.slice(0, -4), "-wal"] : [file, ""]
      const [bytes, sync] = [read(at(file)), ++syncs]
      return () => {
        const [image, last] = synced.get(path)!
        // A sync that began later may have ended before.
        if (last < sync) synced.set(path, [{ ...image, [suffix]: bytes, "": read(at(path)) }, sync])
      }
    },
    /** Ends all processes. */
    crash: (): void => reboot(imageOf),
    /** Ends all processes, and loses what was not synced; `isLater`: whether a sector that was written later survives. */
    powerCut: (isLater: () => boolean = () => false): void =>
      reboot((path) => {
        const [image] = synced.get(path)!
        return { ...image, "-wal": torn(image["-wal"], read(`${at(path)}-wal`), isLater) }
      })
  }
}

export type Disk = ReturnType<typeof make>
