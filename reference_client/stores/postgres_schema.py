"""The PostgreSQL schema: what brings a database from each version to the next. Nothing else lives here.

Times are seconds since the epoch, as everywhere in this package. What a provider wrote is kept as bytes: no
text column takes a NUL.
"""

from typing import Final

__all__ = ["MIGRATIONS"]

MIGRATIONS: Final = (
    """
    CREATE TABLE schema_version (version integer PRIMARY KEY, since timestamptz NOT NULL);

    CREATE FUNCTION store_now() RETURNS double precision LANGUAGE sql VOLATILE
        AS $$ SELECT extract(epoch FROM clock_timestamp())::double precision $$;

    CREATE TABLE history (
        number bigint PRIMARY KEY, operation_id text NOT NULL, before text, after text NOT NULL,
        entry bytea NOT NULL, hash text NOT NULL
    );
    CREATE INDEX history_by_operation ON history (operation_id, number);

    CREATE TABLE operation (
        operation_id text PRIMARY KEY, state text NOT NULL, version bigint NOT NULL, remote_job_id bytea,
        wake_at double precision, lease_owner text, lease_fence bigint NOT NULL DEFAULT 0,
        lease_until double precision, history_number bigint NOT NULL, record bytea NOT NULL
    );
    CREATE INDEX operation_by_wake ON operation (wake_at) WHERE wake_at IS NOT NULL;
    CREATE INDEX operation_by_job ON operation (remote_job_id) WHERE remote_job_id IS NOT NULL;

    CREATE TABLE command (
        number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, operation_id text NOT NULL, command bytea NOT NULL,
        taken boolean NOT NULL DEFAULT false
    );
    CREATE INDEX command_waiting ON command (operation_id, number) WHERE NOT taken;
    CREATE TABLE event (
        number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, event_id text NOT NULL UNIQUE,
        remote_job_id bytea NOT NULL, notice bytea NOT NULL, operation_id text
    );
    CREATE INDEX event_without_operation ON event (remote_job_id) WHERE operation_id IS NULL;
    CREATE TABLE result (operation_id text PRIMARY KEY, body bytea NOT NULL);

    CREATE FUNCTION never_done() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            RAISE EXCEPTION '%', TG_ARGV[0] USING ERRCODE = 'integrity_constraint_violation';
        END $$;

    CREATE FUNCTION history_goes_on() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
        BEGIN
            IF NEW.number IS DISTINCT FROM (SELECT coalesce(max(number), 0) + 1 FROM history) THEN
                RAISE EXCEPTION 'history is append-only: the next entry comes after the last'
                    USING ERRCODE = 'integrity_constraint_violation';
            END IF;
            RETURN NEW;
        END $$;

    CREATE FUNCTION operation_starts_with_history() RETURNS trigger LANGUAGE plpgsql
        SET search_path FROM CURRENT AS $$
        BEGIN
            IF NOT EXISTS (SELECT 1 FROM history WHERE number = NEW.history_number
                           AND operation_id = NEW.operation_id AND before IS NULL AND after = NEW.state) THEN
                RAISE EXCEPTION 'an operation starts with a history entry'
                    USING ERRCODE = 'integrity_constraint_violation';
            END IF;
            RETURN NEW;
        END $$;

    CREATE FUNCTION operation_moves_with_history() RETURNS trigger LANGUAGE plpgsql
        SET search_path FROM CURRENT AS $$
        BEGIN
            IF NEW.operation_id <> OLD.operation_id OR NEW.history_number < OLD.history_number
               OR NEW.lease_fence < OLD.lease_fence THEN
                RAISE EXCEPTION 'an operation keeps its id, and its history and fence only go on'
                    USING ERRCODE = 'integrity_constraint_violation';
            END IF;
            IF NEW.state <> OLD.state AND NOT EXISTS (
                SELECT 1 FROM history WHERE operation_id = NEW.operation_id AND number > OLD.history_number
                AND number <= NEW.history_number AND before = OLD.state AND after = NEW.state) THEN
                RAISE EXCEPTION 'a state changes only with a history entry'
                    USING ERRCODE = 'integrity_constraint_violation';
            END IF;
            RETURN NEW;
        END $$;

    CREATE TRIGGER history_goes_on BEFORE INSERT ON history FOR EACH ROW EXECUTE FUNCTION history_goes_on();
    CREATE TRIGGER history_is_not_edited BEFORE UPDATE ON history FOR EACH ROW
        EXECUTE FUNCTION never_done('history is append-only: an entry is never edited');
    CREATE TRIGGER history_is_not_deleted BEFORE DELETE ON history FOR EACH ROW
        EXECUTE FUNCTION never_done('history is append-only: an entry is never deleted');
    CREATE TRIGGER history_is_not_emptied BEFORE TRUNCATE ON history FOR EACH STATEMENT
        EXECUTE FUNCTION never_done('history is append-only: an entry is never deleted');
    CREATE TRIGGER operation_starts_with_history BEFORE INSERT ON operation FOR EACH ROW
        EXECUTE FUNCTION operation_starts_with_history();
    CREATE TRIGGER operation_moves_with_history BEFORE UPDATE ON operation FOR EACH ROW
        EXECUTE FUNCTION operation_moves_with_history();
    CREATE TRIGGER operation_is_not_deleted BEFORE DELETE ON operation FOR EACH ROW
        EXECUTE FUNCTION never_done('an operation is never deleted');
    CREATE TRIGGER operation_is_not_emptied BEFORE TRUNCATE ON operation FOR EACH STATEMENT
        EXECUTE FUNCTION never_done('an operation is never deleted');
    """,
)
"""One script for each version, run in one transaction each with the recording of the version."""
