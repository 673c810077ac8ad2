import { mapGroups } from '../core/kit/groups.ts'
import { metaKeys, webLink } from '../core/meta.ts'
import type { Content, Entry, Provider } from '../core/provider.ts'
import { compileTemplate } from '../core/template.ts'

export interface LinkedOptions {
  /**
   * An RFC 6570 template of a web URL. `path` is the path below the mount. In a template with `ref`, the first segment is `ref`, and `path`
   * is the rest.
   */
  readonly link: string
  readonly except?: (path: string) => boolean
}

/**
 * Adds to entries and contents the web link under which a person opens them: at a forge, in a wiki, in a bucket. The link is in `_meta`,
 * under `metaKeys.source`. Directories have none.
 *
 * @throws ResourceError `invalid` for a malformed template.
 */
export function linked(provider: Provider, { link, except = () => false }: LinkedOptions): Provider {
  const template = compileTemplate(link)
  const hasRef = template.variables.includes('ref')

  const linkOf = (path: string): string | undefined => {
    if (path.endsWith('/') || except(path)) return undefined
    const slash = path.indexOf('/')
    if (hasRef && slash <= 0) return undefined
    const values = hasRef ? { ref: path.slice(0, slash), path: path.slice(slash + 1) } : { path }
    const text = template.expand(
      Object.fromEntries(Object.entries(values).map(([name, value]) => [name, template.valueFor(name, value)])),
    )
    return webLink(text)
  }

  const withLink = <Facts extends Pick<Entry, 'meta'>>(facts: Facts, path: string): Facts => {
    const link = linkOf(path)
    return link === undefined ? facts : { ...facts, meta: { ...facts.meta, [metaKeys.source]: { link: link } } }
  }

  const { stat } = provider
  return {
    ...provider,
    list: (query, context) => mapGroups(provider.list(query, context), (entry) => withLink(entry, entry.path)),
    ...(stat === undefined ? {} : { stat: async (path, context) => withLink(await stat(path, context), path) }),
    read: async (request, context) => {
      const contents = await provider.read(request, context)
      return contents.map((content): Content => withLink(content, content.path ?? request.path))
    },
  }
}
