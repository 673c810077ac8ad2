import { isBelow } from '../../../browse/folders.ts'
import { decodeComponent } from '../../../core/uri.ts'
import { browse, treeState } from './browse.ts'
import { titleOfMount } from './kinds.ts'

/** One part of the path of a resource. */
interface Crumb {
  readonly label: string
  readonly uri: string
}

/** The path of a resource: its mount, the folders in it, and itself, each decoded and with its URI. */
export function crumbsOf(uri: string): readonly Crumb[] {
  // The mounts are loaded with the tree.
  treeState.value
  const bare = uri.replace(/[?#].*$/s, '')
  const mounts = browse.value?.forest.mounts ?? []
  const mount = mounts
    .filter((one) => one.uri === bare || one.uri === `${bare}/` || isBelow(bare, one.uri))
    .sort((a, b) => b.uri.length - a.uri.length)[0]
  // Before the mounts are known, a path begins with the scheme.
  const root = mount?.uri ?? /^[^:]*:(?:\/\/[^/]*)?\/?/.exec(bare)?.[0] ?? ''
  const crumbs: Crumb[] = [{ label: mount === undefined ? root : titleOfMount(mount), uri: root }]
  let at = root === '' || /[/:]$/.test(root) ? root : `${root}/`
  for (const segment of bare.slice(at.length).split('/')) {
    if (segment === '') continue
    at += segment
    const isLast = at.length >= bare.replace(/\/$/, '').length
    crumbs.push({ label: decoded(segment), uri: isLast ? uri : `${at}/` })
    at += '/'
  }
  return crumbs
}

/** Returns a decoded part of a URI. Invalid encodings stay as they are. */
function decoded(text: string): string {
  return decodeComponent(text) ?? text
}
