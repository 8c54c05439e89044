/**
 * Operations on queues of any broker: dead letters, delayed messages, the status of a queue, its configuration in sentences.
 *
 * When to use: in tools and jobs of operators. Programs without Effect use `@requeue/operations/promise`.
 */
export * as AuditLine from "./dead-letters/AuditLine.ts"
export * as DeadLetters from "./dead-letters/DeadLetters.ts"
export * as DelayedMessages from "./delayed/DelayedMessages.ts"
export * as Explanation from "./explain/Explanation.ts"
export * as LetterDraft from "./dead-letters/LetterDraft.ts"
export * as LetterFilter from "./dead-letters/LetterFilter.ts"
export * as LetterLine from "./dead-letters/LetterLine.ts"
export * as Outage from "./explain/Outage.ts"
export * as OutageReport from "./explain/OutageReport.ts"
export * as QueueStatus from "./status/QueueStatus.ts"
