/** The contract of SQS: scripts with AWS's answers, for the simulated server and for real ones. */
import { rows as clock } from "./contract/clock.ts"
import { rows as moves } from "./contract/moves.ts"
import { rows as queues } from "./contract/queues.ts"
import { rows as receiving } from "./contract/receiving.ts"
import { rows as sending } from "./contract/sending.ts"
import { rows as settling } from "./contract/settling.ts"

export { fauxqs, quota, type Sqs } from "./contract/World.ts"

/** Rows that any number of rows may run beside. */
export const rows = [...queues, ...sending, ...receiving, ...settling, ...moves]

/** Rows that move the clock of their server. */
export const clockRows = clock
