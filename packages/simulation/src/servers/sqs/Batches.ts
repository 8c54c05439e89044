/** Batches: each entry is refused or done on its own, and the call succeeds. */
import * as Result from "effect/Result"
import type * as Api from "./Api.ts"
import { type AwsError, failedEntry } from "./AwsError.ts"

/** Returns the error that a test has requested for the entry at this place. */
export type Refuses = (place: number) => AwsError | undefined

/** Does something for each entry. */
export const each = (
  entries: ReadonlyArray<Api.Entry>,
  refuses: Refuses,
  act: (entry: Api.Entry) => Result.Result<object, AwsError>
): Api.Reply => {
  const Successful: Array<object> = []
  const Failed: Array<object> = []
  for (const [place, entry] of entries.entries()) {
    const { Id = "" } = entry
    const refused = refuses(place)
    const result = refused === undefined ? act(entry) : Result.fail(refused)
    if (Result.isSuccess(result)) Successful.push({ ...result.success, Id })
    else Failed.push(failedEntry(Id, result.failure))
  }
  return Result.succeed({ Successful, Failed })
}
