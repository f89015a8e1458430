// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.24;

/// @title A settlement address that is a contract and receives the network's coin
contract CoinReceiver {
    /// @notice What it does when it receives coin.
    enum Manner {
        Takes,
        Refuses,
        RefusesWithMuch, // reverts with 32 KiB
        TakesWithMuch, // returns 32 KiB
        BurnsGas,
        CallsBack, // makes the armed call
        SendsBack // returns the coin to the sender
    }

    Manner public manner;
    address public target;
    bytes public payload;
    bool public attempted;
    bool public succeeded;

    function behave(Manner manner_) external {
        manner = manner_;
    }

    /// @notice Sets the call that is made when coin arrives.
    function arm(address target_, bytes calldata payload_) external {
        manner = Manner.CallsBack;
        target = target_;
        payload = payload_;
    }

    receive() external payable {
        if (manner == Manner.Refuses) revert("no");
        if (manner == Manner.RefusesWithMuch) {
            assembly {
                revert(0, 0x8000)
            }
        }
        if (manner == Manner.TakesWithMuch) {
            assembly {
                return(0, 0x8000)
            }
        }
        if (manner == Manner.BurnsGas) {
            assembly {
                invalid()
            }
        }
        if (manner == Manner.CallsBack) {
            attempted = true;
            (succeeded,) = target.call(payload);
        }
        if (manner == Manner.SendsBack) {
            (bool sent,) = msg.sender.call{value: msg.value}("");
            require(sent);
        }
    }
}
