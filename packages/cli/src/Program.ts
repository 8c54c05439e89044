/** The whole program, as a function of its arguments and its process. */
import type * as Command from "effect/cli/Command"
import * as Console from "effect/Console"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as NodeConsole from "node:console"
import * as Cli from "./Cli.ts"
import * as ExitCode from "./ExitCode.ts"
import { Abandonment, Ending } from "./Interruption.ts"
import * as OutputFailed from "./OutputFailed.ts"
import { Process, type Service } from "./Process.ts"

/** Cast, because only prompts and flags that are files need these services of `effect/cli`. The commands here have neither. */
const platform = Context.empty() as Context.Context<Command.Environment>

/**
 * Runs a command line in a process, and returns the exit code. If the signal is aborted, work in progress comes to its end.
 * If the program is abandoned as well, it ends at once.
 */
export const run = async (
  args: ReadonlyArray<string>,
  process: Service,
  signal: AbortSignal,
  abandonment = new AbortController()
): Promise<number> => {
  const { stderr, stdout } = process
  // Without a listener, an error of a stream would end the process, and it would not return the letters that it holds.
  let failure: OutputFailed.OutputFailed | undefined
  stdout.on("error", (error) => (failure ??= OutputFailed.of("standard output", error)))
  stderr.on("error", () => {})
  const ending = { code: ExitCode.interrupted }
  const program = Cli.run(args).pipe(
    Effect.provideService(Process, process),
    Effect.provideService(Console.Console, new NodeConsole.Console({ stdout, stderr })),
    Effect.provideService(Abandonment, abandonment),
    Effect.provideService(Ending, ending),
    Effect.provide(platform)
  )
  const abandoned = Promise.withResolvers<number>()
  abandonment.signal.addEventListener("abort", () => abandoned.resolve(ExitCode.interrupted), { once: true })
  const ended = Effect.runPromise(program, { signal }).catch(() => ending.code)
  const code = await Promise.race([abandoned.promise, ended])
  // effect/cli does not check whether help and versions could be printed.
  await Effect.runPromise(Effect.sleep(0))
  if (code !== ExitCode.ok || failure === undefined || failure.isReaderGone) return code
  stderr.write(`requeue: ${failure.message}\n`)
  return ExitCode.of(failure)
}
