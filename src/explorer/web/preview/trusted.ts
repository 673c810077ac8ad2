/**
 * The Trusted Types policy of the page, only for the URLs of its workers. Markup needs none: the page makes nodes, and DOMPurify
 * has its own policy.
 */
interface ScriptPolicy {
  createScriptURL(url: string): unknown
}

interface Factory {
  createPolicy(name: string, rules: { createScriptURL(url: string): string }): ScriptPolicy
}

let policy: ScriptPolicy | undefined

function scriptUrl(url: string): string | URL {
  const { trustedTypes } = globalThis as { trustedTypes?: Factory }
  if (trustedTypes === undefined) return ownScript(url)
  policy ??= trustedTypes.createPolicy('hikidashi', { createScriptURL: ownScript })
  // Browsers accept the trusted URL in place of a string; the DOM types do not know this yet.
  return policy.createScriptURL(url) as string
}

function ownScript(url: string): string {
  const { href, origin } = new URL(url, document.baseURI)
  const assets = new URL('assets/', document.baseURI).href
  if (origin !== location.origin || !href.startsWith(assets)) throw new TypeError('This is no script of the page.')
  return href
}

/** A worker whose script was built with the page. */
export function startWorker(url: string): Worker {
  return new Worker(scriptUrl(url), { type: 'module' })
}
