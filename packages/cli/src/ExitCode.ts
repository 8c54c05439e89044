/** The program's exit codes; all commands have the same. */
import { BrokerError } from "@requeue/core"
import { DeadLetters } from "@requeue/operations"
import { OutputFailed } from "./OutputFailed.ts"
import { Problem } from "./Problem.ts"

export const ok = 0
/** The code if a command found a problem: an impossible policy, a missing queue, a letter that the broker refuses. */
const problem = 1
/** The code for wrong arguments, or for a wrong configuration. */
const misused = 2
/** The code if the broker cannot be reached, or refuses access. */
export const unreachable = 3
/** The code for a mistake in this program. */
export const defect = 70

export const interrupted = 130

/** All codes with their meaning, for help and documentation. */
export const table: ReadonlyArray<readonly [number, string]> = [
  [ok, "all is well"],
  [
    problem,
    "a problem was found: an impossible policy, a queue that is missing or different, a dead letter that is refused, a redrive that stopped early, a part of the broker that does not answer, an output that cannot be written"
  ],
  [misused, "wrong arguments or a wrong configuration"],
  [unreachable, "the broker cannot be reached, or refuses access"],
  [defect, "a mistake in requeue itself"],
  [interrupted, "interrupted by Ctrl-C, SIGTERM or SIGHUP"]
]

/** Returns the exit code for a command's error. */
export const of = (error: unknown): number => {
  if (error instanceof Problem) return problem
  if (error instanceof OutputFailed) return error.isReaderGone ? ok : problem
  if (error instanceof DeadLetters.DeadLettersStopped) return of(error.cause)
  if (error instanceof DeadLetters.AuditFailed) return problem
  if (error instanceof DeadLetters.CallbackFailed) return defect
  if (!(error instanceof BrokerError.BrokerError)) return misused
  return error.isRetryable || error.reason === "AccessRefused" ? unreachable : problem
}
