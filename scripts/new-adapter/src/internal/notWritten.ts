/** The error of an unwritten part of an adapter. Delete this file when nothing imports it any more. */
import { BrokerError } from "@requeue/core/port"

/** `what` names a MUST of the port if there is one, and `file` is a file of this package. */
export const notWritten = (operation: string, what: string, file: string): BrokerError.BrokerError =>
  new BrokerError.BrokerError({
    broker: "acme",
    operation,
    reason: "Unsupported",
    detail: `not written yet: ${what} of packages/core/src/port/Broker.ts`,
    remedy: `Write it in packages/adapter-acme/${file}`
  })
