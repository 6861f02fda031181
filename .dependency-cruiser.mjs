// What may import what. The reasons are in ARCHITECTURE.md; `npm test` keeps the rules.

const ports = '^src/store/[^/]+\\.ts$'
const vocabulary = ['^src/event/', '^src/delivery/', '^src/runtime/']
const stages = 'publish|queue|stream|dispatch|settle|dead-letter|retain|inbox|inspect|alert'
/** The files of the command line that choose adapters and start servers; all others get what these made. */
const cliComposition = ['^src/cli/(composition|database)\\.ts$', '^src/cli/demo/composition\\.ts$']

/** Files under `from` may import, of ours, only what matches `allowed`. */
function only(name, comment, from, allowed) {
  return { name, severity: 'error', comment, from: { path: from }, to: { path: '^src/', pathNot: allowed } }
}

/** Nothing but `allowed` may import `to`. */
function onlyFrom(name, comment, to, allowed) {
  return { name, severity: 'error', comment, from: { path: '^src/', pathNot: allowed }, to: { path: to } }
}

/** @type {import('dependency-cruiser').IConfiguration} */
export default {
  forbidden: [
    { name: 'no-cycles', severity: 'error', from: {}, to: { circular: true } },
    { name: 'resolvable', severity: 'error', from: {}, to: { couldNotResolve: true } },
    only('runtime-alone', 'runtime imports nothing of ours', '^src/runtime/', ['^src/runtime/']),
    only('event-first', 'what travels knows only the runtime', '^src/event/', [
      '^src/event/',
      '^src/runtime/',
    ]),
    only('delivery-second', 'the state knows what travels', '^src/delivery/', vocabulary),
    only('observe-below-stages', 'observation is told, it does not ask', '^src/observe/', [
      '^src/observe/',
      ...vocabulary,
    ]),
    only('store-ports', 'the ports speak the vocabulary only', ports, [ports, ...vocabulary]),
    only(
      'stages-apart',
      'stages do not know each other, the worker composes them',
      `^src/(${stages})/[^/]+\\.ts$`,
      ['^src/$1/', '^src/observe/', ports, ...vocabulary],
    ),
    only(
      'adapters-are-leaves',
      'an adapter sees its port and the vocabulary, and the store of a database the protocol of its log',
      '^src/(store|stream)/([^/]+)/',
      ['^src/$1/$2/', '^src/$1/[^/]+\\.ts$', '^src/stream/$2/', ports, ...vocabulary],
    ),
    only(
      'transports-are-leaves',
      'a transport sees its port and the vocabulary',
      '^src/(dispatch|publish)/(.+)/',
      ['^src/$1/$2/', '^src/$1/[^/]+\\.ts$', '^src/observe/', ...vocabulary],
    ),
    only('sinks-are-leaves', 'a sink sees its port and how alerts are written', '^src/alert/sinks/', [
      '^src/alert/sinks/',
      '^src/alert/[^/]+\\.ts$',
      '^src/observe/',
      ...vocabulary,
    ]),
    only('worker-composes-stages', 'the worker composes stages, not adapters or tools', '^src/worker/', [
      '^src/worker/',
      `^src/(${stages})/[^/]+\\.ts$`,
      '^src/alert/sinks/log-sink\\.ts$',
      '^src/observe/',
      ports,
      ...vocabulary,
    ]),
    only(
      'kafka-composes-stages',
      'the way to Kafka and back is composed of stages, as a worker is',
      '^src/kafka/',
      [
        '^src/kafka/',
        `^src/(${stages})/[^/]+\\.ts$`,
        '^src/worker/(context-services|subscription-options|subscription-problems)\\.ts$',
        '^src/observe/',
        ports,
        ...vocabulary,
      ],
    ),
    {
      name: 'cli-reads-the-model',
      severity: 'error',
      comment: 'the command line sees the database through inspect, dead-letter and retain',
      from: { path: '^src/cli/' },
      to: { path: '^src/(queue|stream|settle)/' },
    },
    onlyFrom(
      'adapters-are-chosen',
      'only a composition names an adapter of the store',
      '^src/(store|stream)/[^/]+/',
      ['^src/(store|stream)/[^/]+/', '^src/testing/', ...cliComposition],
    ),
    onlyFrom('testing-is-for-tests', 'nothing that runs in production starts test servers', '^src/testing/', [
      '^src/testing/',
      ...cliComposition,
    ]),
    onlyFrom('front-door', 'the public door is for users, inside we name the file', '^src/index\\.ts$', []),
    onlyFrom(
      'pg-in-its-adapter',
      'the driver is known to its adapter only',
      '(^|node_modules/(@types/)?)pg(/|$)',
      ['^src/(store|stream)/postgres/', '^src/(cli|testing)/'],
    ),
    onlyFrom(
      'otel-in-its-adapter',
      'traces are made by the adapter only, so that nothing else needs OpenTelemetry',
      'node_modules/@opentelemetry/',
      ['^src/observe/otel/'],
    ),
    onlyFrom(
      'kafka-on-request',
      'an entry of its own: whoever does not ask for it imports nothing',
      '^src/kafka/',
      ['^src/kafka/'],
    ),
    onlyFrom(
      'otel-on-request',
      'the adapter is an entry of its own: whoever does not ask for it imports nothing',
      '^src/observe/otel/',
      ['^src/observe/otel/'],
    ),
    {
      name: 'no-dependencies',
      severity: 'error',
      comment: 'the package has no dependencies: what is installed for development is not there for users',
      from: { path: '^src/' },
      to: {
        dependencyTypes: ['npm-dev', 'npm-no-pkg', 'npm-unknown'],
        pathNot: 'node_modules/((@types/)?pg|@opentelemetry/api)/',
      },
    },
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
    enhancedResolveOptions: {
      exportsFields: ['exports'],
      conditionNames: ['import', 'types', 'node', 'default'],
      extensions: ['.ts', '.js'],
    },
  },
}
