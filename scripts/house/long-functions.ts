/**
 * The functions of more than 120 lines, each with its reason. `test/architecture.test.ts` fails for one that is not listed, and for one that
 * is listed but is shorter now.
 */
export const longFunctions: Readonly<Record<string, string>> = {
  'core/changes.ts createChanges': 'the listeners of all mounts; `open` is most of it',
  'core/changes.ts open': 'the state of one listener: its URIs, watches and end',
  'core/listing.ts createListing': 'the three listings share the walk over mounts and its cursors',
  'core/mount-watch.ts createMountWatch': 'the states of one watch: begun, lost, degraded, ended',
  'explorer/web/mcp/changes.ts createChanges': 'the state of one stream of changes and its recovery',
  'explorer/web/tree/forest.ts createForest': 'the state of all trees: expansion, pages and changes',
  'explorer/web/tree/tree-view.tsx TreeView': 'one component: its keys and its markup',
  'providers/files/linux.ts openLinuxPlaces': 'the system calls on one root share its descriptors',
  'providers/files/list.ts createLister': 'one walk in path order, with and without links',
  'providers/files/watch-run.ts watchFiles': 'the life of one watch, from its thread to its end',
  'providers/files/watch-tree.ts createTree': 'the state of the watched directories',
  'providers/gdrive/snapshot.ts createSnapshot': 'the state of one snapshot of the files',
  'providers/git/lent-objects.ts createLentObjects': 'the state of the folder of lent objects',
  'providers/remote/following.ts createFollowing': 'the state of one upstream subscription',
  'search/feed-mount.ts createFeedMount': 'the state of feeding one mount',
  'search/feed.ts startFeed': 'the state of the feed: lease, mounts and end',
  'server/protocol/connection.ts createConnection':
    'the state of one connection: requests in flight and order of answers',
  'server/http/endpoint.ts createEndpoint': 'the routes of HTTP in the order of their checks',
  'server/http/serve-http.ts serveHttp': 'composes the server; most lines are its options',
  'server/http/legacy.ts createLegacyHttp': 'the sessions of earlier revisions share one table',
  'server/protocol/channel.ts openChannel': 'the steps of one request, in order',
  'store/sqlite/rows.ts createRows': 'the operations of one table, with their prepared statements',
  'store/sqlite/texts.ts createTexts': 'the operations of one table, with their prepared statements',
  'readings/html.ts createPage': 'the state of one page while its tags arrive',
}
