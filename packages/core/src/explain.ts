/**
 * Modules for tools of operators: the configuration of a queue in sentences, and what an outage makes of it.
 *
 * They have an entry of their own, because programs that send and consume need none of them.
 */
export * as Explanation from "./explain/Explanation.ts"
export * as Outage from "./explain/Outage.ts"
export * as OutageReport from "./explain/OutageReport.ts"
