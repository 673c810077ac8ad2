/** The revisions for which the suite runs. */
export const revisions = ['2025-06-18', '2025-11-25', '2026-07-28'] as const

/** The revisions for which the suite has a frozen set of requirements. For the others, it lists the applicable scenarios. */
export const withRequirements: readonly SuiteRevision[] = ['2025-11-25', '2026-07-28']

export type SuiteRevision = (typeof revisions)[number]

/**
 * The scenarios that must pass, by revision: lifecycle, ping, resources, subscriptions, templates, completion, caching, DNS rebinding, and
 * the lists of tools and prompts. There is no list of expected failures.
 */
export const required: Readonly<Record<SuiteRevision, readonly string[]>> = {
  '2025-06-18': [
    'server-initialize',
    'server-session-lifecycle',
    'ping',
    'completion-complete',
    'resources-list',
    'resources-read-text',
    'resources-read-binary',
    'resources-templates-read',
    'resources-subscribe',
    'resources-unsubscribe',
    'tools-list',
    'prompts-list',
  ],
  '2025-11-25': [
    'server-initialize',
    'server-session-lifecycle',
    'server-sse-multiple-streams',
    'ping',
    'completion-complete',
    'resources-list',
    'resources-read-text',
    'resources-read-binary',
    'resources-templates-read',
    'resources-subscribe',
    'resources-unsubscribe',
    'tools-list',
    'prompts-list',
    'dns-rebinding-protection',
  ],
  '2026-07-28': [
    'server-stateless',
    'server-sse-multiple-streams',
    'completion-complete',
    'resources-list',
    'resources-read-text',
    'resources-read-binary',
    'resources-templates-read',
    'sep-2164-resource-not-found',
    'caching',
    'http-header-validation',
    'http-custom-header-server-validation',
    'tools-list',
    'prompts-list',
    'dns-rebinding-protection',
  ],
}

/**
 * The scenarios of the suite that npm tags as latest (0.1.16) that must pass, by revision. In that suite, a client opens several streams
 * of one session, with the headers of another revision than that of the session.
 */
export const requiredOfLatest: Readonly<Partial<Record<SuiteRevision, readonly string[]>>> = {
  '2025-11-25': ['server-sse-multiple-streams'],
}

/** The scenarios of extensions that must pass, without skipped checks. No set of requirements contains them. */
export const requiredOfExtensions: Readonly<Partial<Record<SuiteRevision, readonly string[]>>> = {
  '2026-07-28': ['sep-2640-skills-enumeration', 'sep-2640-skills-manifest', 'sep-2640-skills-directory'],
}

/** The scenarios for clients that must pass, by revision: they judge the mount of another server. */
export const requiredOfClient: Readonly<Partial<Record<SuiteRevision, readonly string[]>>> = {
  '2026-07-28': ['http-custom-headers', 'http-invalid-tool-headers'],
}

/** Reasons why other scenarios do not run, by the prefix of their names. */
const reasons: readonly (readonly [prefix: string, reason: string])[] = [
  ['tools-call-', 'calls tools of its own; there are no real ones'],
  ['prompts-get-', 'gets prompts of its own; there are no real ones'],
  ['logging-', 'logging is not served: the notifications of it tell nothing that a client needs'],
  ['elicitation-', 'nothing is asked of the user'],
  ['input-required-result-', 'no result asks for more input'],
  ['tasks-', 'tasks are not served'],
  ['json-schema-', 'is about the schemas of tools; there are no real ones'],
  ['server-sse-polling', 'calls a tool that hangs up on purpose; there are no real ones'],
]

export function reasonNotToRun(scenario: string): string | undefined {
  return reasons.find(([prefix]) => scenario.startsWith(prefix))?.[1]
}
