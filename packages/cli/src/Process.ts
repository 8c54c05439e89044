/** What a command has of the process that it runs in: of the program's own, or of one that a test makes up. */
import * as Context from "effect/Context"
import type { Readable, Writable } from "node:stream"

export interface Service {
  readonly cwd: () => string
  readonly env: Readonly<Record<string, string | undefined>>
  readonly stdin: Readable & { readonly isTTY?: boolean }
  readonly stdout: Writable & { readonly isTTY?: boolean; readonly columns?: number }
  readonly stderr: Writable & { readonly isTTY?: boolean }
}

export class Process extends Context.Service<Process, Service>()("@requeue/cli/Process") {}
