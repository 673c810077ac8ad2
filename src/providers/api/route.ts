import { invalid, notFound } from '../../core/errors.ts'
import { isPath } from '../../core/path.ts'
import type { Description, Params } from '../../core/provider.ts'
import { compileTemplate } from '../../core/template.ts'
import { encodePath } from '../../core/uri.ts'
import { parsePointer } from '../settings/tree.ts'

/** Listing of the resources of a route. Positions in answers are JSON pointers. */
export interface RouteList {
  /** URL of the listing, relative to `url`: `users?per_page=100`. */
  readonly from: string
  /** Pointer to the array in the answer. Default: the whole answer. */
  readonly items?: string
  /** Pointer to the value of each variable in an item. Default for a single variable: `/id`. */
  readonly values?: Readonly<Record<string, string>>
  /** Pointer to the title in an item. */
  readonly title?: string
  /** Pointer to the description in an item. */
  readonly description?: string
  /** Pointer to the modification time in an item. */
  readonly modified?: string
  /** Pagination of the listing. Default: a single page. */
  readonly next?:
    | 'link'
    | { readonly cursor: string; readonly param: string }
    | { readonly page: string; readonly from?: number }
}

/** A family of resources of an API: a template of their URIs in the mount, and one of their URLs at the API. */
export interface RouteOptions extends Description {
  /** A URI template relative to the mount: `users/{id}`, `search{?q,page}`. */
  readonly template: string
  /** The corresponding URL template, relative to `url`. Default: the same template. */
  readonly to?: string
  readonly list?: RouteList
}

/** @throws ResourceError `invalid` for an invalid route. */
export function compileRoute(options: RouteOptions) {
  const { template, to = template, list } = options
  const own = parseRouteTemplate(template)
  if (/\}\{\w/.test(own.path)) throw routeError(template, 'two variables side by side need a character between them')
  const there = parseRouteTemplate(to.replace(/^\//, ''))
  const unknown = [...there.inPath, ...there.inQuery].find((name) => ![...own.inPath, ...own.inQuery].includes(name))
  if (unknown !== undefined)
    throw routeError(template, `"to" has the variable ${unknown}, which "template" does not have`)
  const optional = there.inPath.find((name) => own.inQuery.includes(name))
  if (optional !== undefined)
    throw routeError(template, `${optional} is in the path of "to", but is optional in "template"`)
  const matcher = compileTemplate(template)
  const target = compileTemplate(to.replace(/^\//, ''))
  // The same URL without the escapes that the operator has written: `to` may contain %2F, and values may not.
  const probe = compileTemplate(to.replace(/^\//, '').replace(/%[0-9a-f]{2}/gi, 'x'))

  const match = (path: string, params: Params): ReadonlyMap<string, string> | undefined => {
    const query = [...params]
      .map(([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(value)}`)
      .join('&')
    const matchedValues = matcher.match(
      path.split('/').map(encodeURIComponent).join('/') + (query === '' ? '' : `?${query}`),
    )
    if (matchedValues === undefined) return undefined
    const values = new Map(
      [...matchedValues].flatMap(([name, value]) => (typeof value === 'string' ? [[name, value] as const] : [])),
    )
    return own.inPath.every((name) => (values.get(name) ?? '') !== '') ? values : undefined
  }

  /** Returns the encoded URL relative to `url`; undefined for a value that no path can hold. */
  const urlOf = (values: ReadonlyMap<string, string>): string | undefined => {
    if (!there.inPath.every((name) => isPathValue(values.get(name) ?? ''))) return undefined
    const url = target.expand(values)
    return isSound(url) && isSoundDecoded(probe.expand(values)) ? url : undefined
  }

  /** Returns the path of a resource; undefined when the values form none, one that would be parsed differently, or one without a URL. */
  const pathOf = (values: ReadonlyMap<string, string>): string | undefined => {
    const path = own.path.replace(/\{(\w+)\}/g, (_, name: string) => values.get(name) ?? '')
    if (path === '' || !isPath(path) || path.endsWith('/')) return undefined
    const pathValues = match(path, new Map())
    const isSame = own.inPath.every((name) => pathValues?.get(name) === values.get(name))
    return isSame && urlOf(values) !== undefined ? path : undefined
  }

  return {
    options,
    /** The variables in the path of the template. */
    inPath: own.inPath,
    /** The variables in the query of the template. */
    inQuery: own.inQuery,
    match,
    pathOf,
    /** @throws ResourceError `not-found` for a value that no path can hold. */
    urlOf: (values: ReadonlyMap<string, string>): string => {
      const url = urlOf(values)
      if (url === undefined) throw notFound('the values do not form a path of the API')
      return url
    },
    list: list === undefined ? undefined : { ...list, values: checkList(template, list, own.inPath) },
  }
}

export type Route = ReturnType<typeof compileRoute>

function isPathValue(value: string): boolean {
  return value !== '' && !hasSeparator(value)
}

function hasSeparator(text: string): boolean {
  return /[/\\]|\p{Cc}/u.test(text)
}

/** Whether no segment of the built URL is empty, `.` or `..`: two adjacent values could form such a segment. */
function isSound(url: string): boolean {
  const path = url.replace(/\?.*$/s, '')
  return path === '' || path.split('/').every((segment) => !/^(?:\.|%2e){0,2}$/i.test(segment))
}

/** Maximum number of times that a segment is decoded. A segment that is still encoded then is refused. */
const maxDecodings = 10

/**
 * Whether no separator (`/`, `\`, `?`, `#`), `.` or `..` appears in the segments of the built URL, however often the API decodes them. The
 * first decoding returns the values themselves, in which `?` and `#` are allowed.
 */
function isSoundDecoded(url: string): boolean {
  return url
    .replace(/\?.*$/s, '')
    .split('/')
    .every((segment) => {
      let text = decodedOnce(segment)
      if (hasSeparator(text)) return false
      for (let count = 1; count < maxDecodings; count++) {
        const next = decodedOnce(text)
        if (next === text) return !/^\.{1,2}$/.test(text)
        if (/[?#]/.test(next) || hasSeparator(next)) return false
        text = next
      }
      return false
    })
}

/** Decodes percent-encoded UTF-8 once. Other percent signs are unchanged. */
function decodedOnce(text: string): string {
  return text.replace(/(?:%[0-9a-f]{2})+/gi, (run) => Buffer.from(run.replaceAll('%', ''), 'hex').toString('utf8'))
}

/** Throws for a variable that is neither `{name}` nor a parameter. */
function parseRouteTemplate(template: string) {
  const [, path = '', rest = ''] = /^([^{?]*(?:\{\w+\}[^{?]*)*)(.*)$/s.exec(template) ?? []
  const query = /^(?:\?[^{}?#]*)?(?:\{[?&]\w+(?:,\w+)*\})?$/.test(rest)
  if (!query || template.startsWith('/') || /[#\\\s]/.test(template))
    throw routeError(template, 'write {name} in its path, and {?a,b} or {&a,b} at its end')
  const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => name)
  const inQuery = (/\{[?&](.*)\}/.exec(rest)?.[1] ?? '').split(',').filter((name) => name !== '')
  if (!isPath(path.replace(/\{\w+\}/g, 'x')) || path.endsWith('/')) throw routeError(template, 'its path is not valid')
  return { path, inPath, inQuery }
}

function checkList(template: string, list: RouteList, inPath: readonly string[]): Readonly<Record<string, string>> {
  const [only, other] = inPath
  const values = list.values ?? (only !== undefined && other === undefined ? { [only]: '/id' } : {})
  const missing = inPath.find((name) => !Object.hasOwn(values, name))
  if (missing !== undefined)
    throw routeError(template, `"values" of its list does not say where ${missing} is in an item`)
  const cursor = typeof list.next === 'object' && 'cursor' in list.next ? [list.next.cursor] : []
  const pointers = [list.items, list.title, list.description, list.modified, ...Object.values(values), ...cursor]
  for (const pointer of pointers) if (pointer !== undefined) parsePointer(pointer)
  if (/[#\\\s]|\.\.|^\/\//.test(list.from)) throw routeError(template, '"from" of its list is not a path below "url"')
  return values
}

function routeError(template: string, why: string) {
  return invalid(`The route ${JSON.stringify(template)} is not valid: ${why}.`, 'configuration')
}

/** Encodes the path in the relative URL of a listing, unless the path has escapes already. */
export const encodeListingUrl = (from: string): string => {
  const [, path = '', query = ''] = /^\/?([^?]*)(.*)$/s.exec(from) ?? []
  return (/%/.test(path) ? path : encodePath(path)) + query
}
