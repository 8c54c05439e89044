/** The log of a file: next to it, SQLite writes what it commits. Tests replace it, as they do `client.ts`. */
import * as fs from "node:fs"
import { type FileHandle, open } from "node:fs/promises"
import { dirname } from "node:path"
import { Worker } from "node:worker_threads"
import { checkpoint } from "./connect/checkpoint.ts"

/** Works on the log of one file, without waiting for the disk in the event loop. */
export interface Log {
  /** Resolves once all earlier commits are on the disk. */
  readonly flush: () => Promise<void>
  /** Whether the log has this many pages; false if it cannot be read. */
  readonly has: (pages: number) => boolean
  /** Copies the log into the file, and begins it again if it has this many pages. Resolves to whether nothing prevented it. */
  readonly checkpoint: (pages: number) => Promise<boolean>
  /** Resolves once no thread uses the file. Other calls open the log again. */
  readonly close: () => Promise<void>
}

/** Returns the path of a file's log: of a link, SQLite keeps the log next to the file that the link leads to. */
export const pathOf = (path: string): string => `${fs.realpathSync(path)}-wal`

const syncFolder = async (folder: string): Promise<void> => {
  const handle = await open(folder)
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}

/** The first flush also writes the file's entry in its folder: otherwise a power cut could take the whole file. */
const flushing = (path: string) => {
  // Windows flushes only files that are open for writing, and no folders.
  const isWindows = process.platform === "win32"
  let log: Promise<FileHandle> | undefined
  const opened = async (): Promise<FileHandle> => {
    const file = pathOf(path)
    const handle = await open(file, isWindows ? "r+" : "r")
    if (!isWindows) await syncFolder(dirname(file))
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

/** The bytes of the log's header, and of each page's. https://www.sqlite.org/fileformat2.html#walformat */
const [header, frame] = [32, 24]

/**
 * The size of the log's file does not change when the log begins again, but the salt in its header does: a page has the same one, or
 * is older.
 */
const measuring = (path: string) => {
  const [first, last] = [Buffer.alloc(header), Buffer.alloc(frame)]
  let file: number | undefined
  const close = (): void => {
    if (file !== undefined) fs.closeSync(file)
    file = undefined
  }
  const has = (pages: number): boolean => {
    try {
      file ??= fs.openSync(pathOf(path), "r")
      fs.readSync(file, first, 0, header, 0)
      const position = header + (pages - 1) * (frame + first.readUInt32BE(8))
      return fs.readSync(file, last, 0, frame, position) === frame && first.compare(last, 8, 16, 16, 24) === 0
    } catch {
      return false
    }
  }
  return { has, close }
}

/** The program of the thread. It fails rather than create a file. */
const program = `
  const { parentPort, workerData } = require("node:worker_threads")
  const { DatabaseSync } = require("node:sqlite")
  const checkpoint = ${String(checkpoint)}
  const url = require("node:url").pathToFileURL(workerData)
  url.searchParams.set("mode", "rw")
  const db = new DatabaseSync(url, { timeout: 100 })
  parentPort.on("message", (pages) => parentPort.postMessage(checkpoint(db, pages)))
`

/** A thread that lives from the first checkpoint until it is closed or fails. */
const checkpointing = (path: string) => {
  let thread: Worker | undefined
  const ended = (worker: Worker): void => {
    if (thread === worker) thread = undefined
  }
  const start = (): Worker => {
    // Without the program's own flags, which may load more programs. Node 22 would warn again that SQLite is experimental.
    const env = { NODE_NO_WARNINGS: "1" }
    const worker = new Worker(program, { eval: true, workerData: path, execArgv: [], env })
    worker.unref()
    for (const event of ["error", "exit"]) worker.once(event, () => ended(worker))
    return worker
  }
  return {
    checkpoint: (pages: number) =>
      new Promise<boolean>((resolve, reject) => {
        const worker = (thread ??= start())
        const exited = () => reject(new Error("the thread has ended"))
        worker.once("message", (isDone: boolean) => {
          worker.off("exit", exited)
          worker.off("error", reject)
          resolve(isDone)
        })
        worker.once("error", reject)
        worker.once("exit", exited)
        // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread has no origin
        worker.postMessage(pages)
      }),
    close: async () => void (await thread?.terminate())
  }
}

/** Returns the log of a file. */
export const node = (path: string): Log => {
  const [flusher, meter, thread] = [flushing(path), measuring(path), checkpointing(path)]
  return {
    flush: flusher.flush,
    has: meter.has,
    checkpoint: thread.checkpoint,
    close: () => {
      flusher.close()
      meter.close()
      return thread.close()
    }
  }
}
