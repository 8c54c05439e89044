/** Messages with a name that may stand for two copies. */
import type { Key } from "../../History.ts"
import type { CopyLife, DeliveryLife, Lives } from "./Lives.ts"

/** Whether a client has replaced the message of a delivery, which it does without a settlement. */
const isReplaced = ({ back, settlings }: DeliveryLife): boolean =>
  back?.entry.why === "asked" && settlings.every(({ index }) => index > back.index)

/** Whether the replacement and the original may both have been delivered, or to several processes. */
const isDoubled = ({ deliveries, stored }: CopyLife): boolean =>
  stored?.entry.replaces === true ||
  deliveries.some(
    (each) =>
      isReplaced(each) && (each.arrived !== undefined || deliveries.some(({ process }) => process !== each.process))
  )

/**
 * The messages whose copies a process may not recognise. The adapter for RabbitMQ replaces a message whose returns the server does
 * not count, before its core receives it. If the original remains, or another process has it, the name identifies neither: see
 * `handedOut` of the adapter. What processes decide about such a message is at least once, and no more.
 */
export const doubled = ({ keys, scenario }: Lives): ReadonlySet<Key> =>
  new Set(
    scenario.kind === "rabbitmq"
      ? [...keys.values()].filter(({ copies }) => copies.some(isDoubled)).map(({ key }) => key)
      : []
  )
