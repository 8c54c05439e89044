/** The process that commands run in: the program's own, or one of a test. */
import * as Context from "effect/Context"
import type { Readable, Writable } from "node:stream"

/** The part of a process that commands use. */
export interface Service {
  readonly cwd: () => string
  readonly env: Readonly<Record<string, string | undefined>>
  readonly stdin: Readable & { readonly isTTY?: boolean }
  readonly stdout: Writable & { readonly isTTY?: boolean; readonly columns?: number }
  readonly stderr: Writable & { readonly isTTY?: boolean }
}

export class Process extends Context.Service<Process, Service>()("@requeue/cli/Process") {}
