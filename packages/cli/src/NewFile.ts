/** A file that appears only when it is complete. Until then it has a temporary name. */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { constants, copyFile, link, open, rm } from "node:fs/promises"
import { resolve } from "node:path"
import * as OutputFailed from "./OutputFailed.ts"
import { Process } from "./Process.ts"
import { UsageError } from "./UsageError.ts"

export interface NewFile {
  readonly write: (text: string) => Effect.Effect<void, OutputFailed.OutputFailed>
  /** Gives the complete file its name. */
  readonly finish: Effect.Effect<void, OutputFailed.OutputFailed>
}

/** Gives a file a second name. Fails if another file has that name. */
const name = (from: string, to: string): Promise<void> =>
  // Not every file system has links.
  link(from, to).catch(() => copyFile(from, to, constants.COPYFILE_EXCL))

/** Begins the file that a flag names. If the scope closes before `finish`, the file is removed. */
export const make = (flag: string, given: string): Effect.Effect<NewFile, UsageError, Process | Scope.Scope> =>
  Effect.gen(function* () {
    const { cwd } = yield* Process
    const path = resolve(cwd(), given)
    const partial = `${path}.${crypto.randomUUID().slice(0, 8)}.partial`
    // With the given name, not with the absolute path.
    const detailOf = (error: unknown) =>
      String(error)
        .replaceAll(partial, () => given)
        .replaceAll(path, () => given)
    const refused = (error: unknown) =>
      new UsageError({ detail: `${flag}: ${detailOf(error)}`, remedy: "Give a new file that can be written" })
    const failed = (error: unknown) => OutputFailed.of(flag, detailOf(error))
    const begin = async () => {
      // Checks that the name is free before the long work, and not only after it.
      await open(path, "r").then(
        async (file) => {
          await file.close()
          throw new Error(`EEXIST: file already exists, ${given}`)
        },
        (error: NodeJS.ErrnoException) => {
          if (error.code !== "ENOENT") throw error
        }
      )
      return open(partial, "wx")
    }
    const file = yield* Effect.acquireRelease(Effect.tryPromise({ try: begin, catch: refused }), (handle) =>
      Effect.promise(async () => {
        await handle.close()
        await rm(partial, { force: true })
      })
    )
    const attempt = (run: () => Promise<void>) => Effect.tryPromise({ try: run, catch: failed })
    return {
      write: (text) => attempt(() => file.appendFile(text)),
      finish: attempt(async () => {
        // A disk may report only now that it is full.
        await file.sync()
        await name(partial, path)
      })
    }
  })
