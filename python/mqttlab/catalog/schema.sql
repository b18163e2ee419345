CREATE TABLE experiment (
    id INTEGER NOT NULL,
    name VARCHAR(255) NOT NULL,
    directory VARCHAR(700) NOT NULL,
    kind VARCHAR(120) NOT NULL,
    design TEXT NOT NULL,
    toml TEXT NOT NULL,
    created_at VARCHAR(32),
    CONSTRAINT pk_experiment PRIMARY KEY (id),
    CONSTRAINT uq_experiment_directory UNIQUE (directory)
);

CREATE INDEX ix_experiment_name ON experiment (name);

CREATE TABLE machine (
    id INTEGER NOT NULL,
    digest VARCHAR(64) NOT NULL,
    processor VARCHAR(255),
    processors INTEGER,
    architecture VARCHAR(120),
    system VARCHAR(120),
    kernel VARCHAR(255),
    memory_bytes BIGINT,
    CONSTRAINT pk_machine PRIMARY KEY (id),
    CONSTRAINT uq_machine_digest UNIQUE (digest)
);

CREATE TABLE saved_view (
    name VARCHAR(255) NOT NULL,
    json TEXT NOT NULL,
    CONSTRAINT pk_saved_view PRIMARY KEY (name)
);

CREATE TABLE scenario (
    id INTEGER NOT NULL,
    name VARCHAR(255) NOT NULL,
    toml TEXT NOT NULL,
    digest VARCHAR(64) NOT NULL,
    CONSTRAINT pk_scenario PRIMARY KEY (id),
    CONSTRAINT uq_scenario_digest UNIQUE (digest)
);

CREATE TABLE series (
    id INTEGER NOT NULL,
    metric VARCHAR(120) NOT NULL,
    scope VARCHAR(32) NOT NULL,
    scope_name VARCHAR(255) NOT NULL,
    unit VARCHAR(120) NOT NULL,
    CONSTRAINT pk_series PRIMARY KEY (id),
    CONSTRAINT uq_series_metric_scope_scope_name UNIQUE (metric, scope, scope_name)
);

CREATE TABLE version (
    id INTEGER NOT NULL,
    engine VARCHAR(120) NOT NULL,
    schema_version INTEGER NOT NULL,
    CONSTRAINT pk_version PRIMARY KEY (id),
    CONSTRAINT uq_version_engine_schema_version UNIQUE (engine, schema_version)
);

CREATE TABLE factor (
    id INTEGER NOT NULL,
    experiment_id INTEGER NOT NULL,
    name VARCHAR(255) NOT NULL,
    places TEXT NOT NULL,
    unit VARCHAR(120),
    kind VARCHAR(120),
    scale VARCHAR(120),
    CONSTRAINT pk_factor PRIMARY KEY (id),
    CONSTRAINT uq_factor_experiment_id_name UNIQUE (experiment_id, name),
    CONSTRAINT fk_factor_experiment_id_experiment FOREIGN KEY(experiment_id) REFERENCES experiment (id) ON DELETE CASCADE
);

CREATE TABLE "plan" (
    id INTEGER NOT NULL,
    scenario_id INTEGER,
    json TEXT NOT NULL,
    digest VARCHAR(64) NOT NULL,
    CONSTRAINT pk_plan PRIMARY KEY (id),
    CONSTRAINT fk_plan_scenario_id_scenario FOREIGN KEY(scenario_id) REFERENCES scenario (id),
    CONSTRAINT uq_plan_digest UNIQUE (digest)
);

CREATE TABLE point (
    id INTEGER NOT NULL,
    experiment_id INTEGER NOT NULL,
    number INTEGER NOT NULL,
    "key" TEXT,
    CONSTRAINT pk_point PRIMARY KEY (id),
    CONSTRAINT uq_point_experiment_id_number UNIQUE (experiment_id, number),
    CONSTRAINT fk_point_experiment_id_experiment FOREIGN KEY(experiment_id) REFERENCES experiment (id) ON DELETE CASCADE
);

CREATE TABLE level (
    point_id INTEGER NOT NULL,
    factor_id INTEGER NOT NULL,
    text TEXT NOT NULL,
    value DOUBLE,
    CONSTRAINT pk_level PRIMARY KEY (point_id, factor_id),
    CONSTRAINT fk_level_point_id_point FOREIGN KEY(point_id) REFERENCES point (id) ON DELETE CASCADE,
    CONSTRAINT fk_level_factor_id_factor FOREIGN KEY(factor_id) REFERENCES factor (id) ON DELETE CASCADE
);

CREATE TABLE run (
    id INTEGER NOT NULL,
    run_id VARCHAR(40) NOT NULL,
    directory VARCHAR(700) NOT NULL,
    name VARCHAR(255) NOT NULL,
    backend VARCHAR(120) NOT NULL,
    producer VARCHAR(120),
    state VARCHAR(120) NOT NULL,
    valid BOOLEAN,
    reason TEXT,
    seed BIGINT,
    repetition INTEGER,
    started_at VARCHAR(32),
    planned_s DOUBLE,
    bytes BIGINT,
    broker_kind VARCHAR(120),
    broker_version VARCHAR(120),
    plan_id INTEGER NOT NULL,
    machine_id INTEGER,
    version_id INTEGER,
    experiment_id INTEGER,
    point_id INTEGER,
    kind VARCHAR(120),
    block INTEGER,
    order_no INTEGER,
    attempt INTEGER,
    run_json TEXT NOT NULL,
    messages_sent BIGINT,
    messages_delivered BIGINT,
    undelivered_percent DOUBLE,
    latency_ms_p50 DOUBLE,
    latency_ms_p95 DOUBLE,
    latency_ms_p99 DOUBLE,
    ip_kb_per_device_hour_up DOUBLE,
    ip_kb_per_device_hour_down DOUBLE,
    CONSTRAINT pk_run PRIMARY KEY (id),
    CONSTRAINT uq_run_run_id UNIQUE (run_id),
    CONSTRAINT fk_run_plan_id_plan FOREIGN KEY(plan_id) REFERENCES "plan" (id),
    CONSTRAINT fk_run_machine_id_machine FOREIGN KEY(machine_id) REFERENCES machine (id),
    CONSTRAINT fk_run_version_id_version FOREIGN KEY(version_id) REFERENCES version (id),
    CONSTRAINT fk_run_experiment_id_experiment FOREIGN KEY(experiment_id) REFERENCES experiment (id),
    CONSTRAINT fk_run_point_id_point FOREIGN KEY(point_id) REFERENCES point (id)
);

CREATE INDEX ix_run_directory ON run (directory);

CREATE INDEX ix_run_experiment_id_point_id ON run (experiment_id, point_id);

CREATE INDEX ix_run_started_at ON run (started_at);

CREATE TABLE baseline (
    name VARCHAR(255) NOT NULL,
    run_id INTEGER NOT NULL,
    covers VARCHAR(120) NOT NULL,
    set_at VARCHAR(32) NOT NULL,
    CONSTRAINT pk_baseline PRIMARY KEY (name),
    CONSTRAINT fk_baseline_run_id_run FOREIGN KEY(run_id) REFERENCES run (id) ON DELETE CASCADE
);

CREATE TABLE metric_value (
    series_id INTEGER NOT NULL,
    run_id INTEGER NOT NULL,
    value DOUBLE NOT NULL,
    CONSTRAINT pk_metric_value PRIMARY KEY (series_id, run_id),
    CONSTRAINT fk_metric_value_series_id_series FOREIGN KEY(series_id) REFERENCES series (id) ON DELETE CASCADE,
    CONSTRAINT fk_metric_value_run_id_run FOREIGN KEY(run_id) REFERENCES run (id) ON DELETE CASCADE
)
 WITHOUT ROWID;

CREATE INDEX ix_metric_value_run_id ON metric_value (run_id);

CREATE TABLE note (
    id INTEGER NOT NULL,
    run_id INTEGER,
    experiment_id INTEGER,
    at VARCHAR(32) NOT NULL,
    author VARCHAR(255) NOT NULL,
    text TEXT NOT NULL,
    CONSTRAINT pk_note PRIMARY KEY (id),
    CONSTRAINT fk_note_run_id_run FOREIGN KEY(run_id) REFERENCES run (id) ON DELETE CASCADE,
    CONSTRAINT fk_note_experiment_id_experiment FOREIGN KEY(experiment_id) REFERENCES experiment (id) ON DELETE CASCADE
);

CREATE TABLE sketch (
    run_id INTEGER NOT NULL,
    metric VARCHAR(120) NOT NULL,
    scope VARCHAR(32) NOT NULL,
    scope_name VARCHAR(255) NOT NULL,
    data BLOB NOT NULL,
    CONSTRAINT pk_sketch PRIMARY KEY (run_id, metric, scope, scope_name),
    CONSTRAINT fk_sketch_run_id_run FOREIGN KEY(run_id) REFERENCES run (id) ON DELETE CASCADE
);

CREATE TABLE tag (
    run_id INTEGER NOT NULL,
    name VARCHAR(255) NOT NULL,
    value VARCHAR(255) NOT NULL,
    CONSTRAINT pk_tag PRIMARY KEY (run_id, name),
    CONSTRAINT fk_tag_run_id_run FOREIGN KEY(run_id) REFERENCES run (id) ON DELETE CASCADE
);

CREATE INDEX ix_tag_name_value ON tag (name, value);
