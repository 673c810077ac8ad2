import { expect, test } from 'vitest'
import {
  emptyTree,
  folderAt,
  folderIfShown,
  pathTo,
  type Tree,
  withOpenFolder,
  withPage,
  withReloadedFolder,
} from '../../src/browse/tree.ts'
import type { Resource } from '../../src/core/view.ts'

const cache = { ttlMs: 0, scope: 'private' } as const
const root = { uri: 'mem://m', name: 'm' }
const named = (...names: readonly string[]): readonly Resource[] =>
  names.map((name) => ({ uri: name === '' ? root.uri : `${root.uri}/${name}`, name }))
const enters = ({ uri }: Resource) => uri.endsWith('/') || uri === root.uri
const first: Tree<string> = { ...emptyTree, roots: [root] }
const names = (tree: Tree<string>) => folderAt(tree, root.uri).items.map(({ name }) => name)

test('the pages of a directory in a resource tree are joined, with each entry once, and without the directory itself', () => {
  const one = withPage(first, root.uri, '', { items: named('a', '', 'b', 'a'), nextCursor: '2', cache })
  expect(withPage(one, root.uri, '', { items: named('late'), cache })).toBe(one)
  const two = withPage(one, root.uri, '2', { items: named('b', 'c'), nextCursor: '2', cache })
  expect(names(two)).toEqual(['a', 'b', 'c'])
  // A cursor that leads back to itself is the end.
  expect(folderAt(two, root.uri).next).toBeUndefined()
  expect(names(first)).toEqual([])
})

test('a directory of a resource tree that is listed again marks new and changed entries, and stays open', () => {
  const opened = withOpenFolder(withPage(first, root.uri, '', { items: named('a', 'b', 'c'), cache }), root.uri)
  const items = named('a', 'b', 'd').map((item) => (item.name === 'b' ? { ...item, version: '2' } : item))
  const { tree, changed } = withReloadedFolder(opened, root.uri, { items })
  expect(changed).toEqual(['mem://m/b', 'mem://m/d'])
  expect(folderAt(tree, root.uri)).toMatchObject({ isOpen: true, next: undefined })
})

test('a resource tree does not follow a directory that contains itself', () => {
  const looped = withOpenFolder(withPage(first, root.uri, '', { items: named('x/'), cache }), root.uri)
  expect(folderIfShown(looped, root.uri, [])).toBeDefined()
  expect(folderIfShown(looped, root.uri, [root.uri])).toBeUndefined()
  const items = [{ ...root, name: 'again' }]
  const cycle = withPage(looped, 'mem://m/x/', '', { items, cache })
  expect(pathTo(cycle, 'mem://m/x/y', enters).found).toBeUndefined()
})

test('the path to a resource in a tree is found as far as its directories are loaded, in any spelling of the URI', () => {
  expect(pathTo(first, 'mem://m/é/b.md', enters)).toEqual({ folders: [root.uri], lacks: root.uri })
  const one = withPage(first, root.uri, '', { items: named('%C3%A9/', 'é.md'), cache })
  const inside = `${root.uri}/%C3%A9/`
  expect(pathTo(one, 'mem://m/é/b.md', enters)).toEqual({ folders: [root.uri, inside], lacks: inside })
  const two = withPage(one, inside, '', { items: named('%C3%A9/b.md', '%C3%A9/b.md?v=1'), cache })
  expect(pathTo(two, 'mem://m/é/b.md?lines=3', enters).found?.name).toBe('%C3%A9/b.md')
  expect(pathTo(two, `${inside}b.md?v=1`, enters).found?.name).toBe('%C3%A9/b.md?v=1')
  expect(pathTo(two, 'mem://m/é/c.md', enters)).toEqual({ folders: [root.uri, inside] })
})
