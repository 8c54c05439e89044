/** Makes a short id of a cause. It is the same in every browse and every process. */
import type { DeadLetters } from "@requeue/operations"
import { createHash } from "node:crypto"

/** Returns the id of a cause: 16 hexadecimal digits. */
export const of = ({ error, pattern, queue, reason }: DeadLetters.Cause): string =>
  createHash("sha256")
    .update(JSON.stringify([queue, reason, error, pattern]))
    .digest("hex")
    .slice(0, 16)
