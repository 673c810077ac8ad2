import type { RemoteView } from '../../client/index.ts'
import { isResourceError, ResourceError } from '../../core/errors.ts'
import { templateOfForeign } from '../../core/foreign.ts'
import type { Log } from '../../core/log.ts'
import type { Template } from '../../core/provider.ts'
import { compileTemplate } from '../../core/template.ts'
import { describeTemplate } from './entries.ts'

/** A template of the mount, and the server's template behind it. */
export interface RelayedTemplate {
  readonly template: Template
  readonly uriTemplate: string
}

const maxTemplates = 5000
const maxPages = 1000

/** The templates of a server. Those that cannot be mapped to a path of the mount are left out, and the log says so. */
export async function fetchTemplates(
  view: RemoteView,
  { mark, log, signal }: { readonly mark: string; readonly log: Log; readonly signal: AbortSignal },
): Promise<readonly RelayedTemplate[]> {
  const found = new Map<string, RelayedTemplate>()
  let cursor: string | undefined
  for (let pages = 0; pages < maxPages; pages++) {
    const page = await view.templates(cursor === undefined ? {} : { cursor }, { signal })
    for (const item of page.items) {
      const template = templateOfForeign(item.uriTemplate)
      const described = describeTemplate(item, mark)
      if (described === undefined) continue
      if (template === undefined || !isTemplate(template)) {
        log('warn', 'a template of the server cannot be relayed', { template: item.uriTemplate.slice(0, 200) })
        continue
      }
      if (!found.has(template))
        found.set(template, { template: { template, ...described }, uriTemplate: item.uriTemplate })
    }
    if (found.size > maxTemplates)
      throw new ResourceError('too-large', `The server has over ${maxTemplates} templates.`)
    cursor = page.nextCursor
    if (cursor === undefined) return [...found.values()]
  }
  throw new ResourceError('too-large', `The templates of the server have over ${maxPages} pages.`)
}

function isTemplate(text: string): boolean {
  try {
    compileTemplate(text)
    return true
  } catch (error) {
    if (isResourceError(error)) return false
    throw error
  }
}
